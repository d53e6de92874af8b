// Package sweep schedules many tasks on resources that ask for money, within a deadline
// and a budget, as the broker of 004 does (section 3): it assigns tasks to resources by one of
// five strategies, dispatches them while processors are free, and takes back what was not
// dispatched when a resource turns out to be different from what was expected.
//
//	Problem --Advise--> Plan: which tasks where, what they cost, when they end
//
// Live sweeps, the simulator and the experiments use this one planner. All arithmetic is
// in integers, so that a plan is the same on every machine.
package sweep
