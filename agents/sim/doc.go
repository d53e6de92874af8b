// Package sim runs agents in a simulated world: one goroutine, a virtual clock, and a
// network, disks and hosts whose faults are drawn from one seed.
//
// The agents are the real ones: their roles, the bytes and signatures of the codec, and
// the order of saving and sending of agents.Outbox. Only the network, the clock, the disks
// and the local correspondents are simulated. The same seed, configuration and version
// give the same run, event by event, and the same Hash, on any number of processors.
//
//	Tell, alarm, message --> role --Output--> Outbox --disk--> seal --> network
//	                          ^                                           |
//	                          +------------------- open <-----------------+
//
// A World knows nothing of markets. Package market puts users, resources and banks into
// one and checks the invariants. Any other agents.Role can join them, honest or not.
package sim
