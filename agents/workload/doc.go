// Package workload represents the past and the future of a batch system in numbers: it reads and
// writes logs in the Standard Workload Format, makes synthetic ones, plays a log forward under EASY
// back-filling with sold slots added, and computes how many cores are free when.
//
// It decides without I/O: callers pass readers and random sources, and time is an
// argument. All times are whole seconds on the caller's clock: seconds of the log for a
// Log, a View and a Machine; any unit of the caller (such as Unix seconds) for a
// Profile. An interval contains its start and not its end.
//
//	ReadSWF ----> Log ----> View      what was busy (the oracle's view)
//	Synthesize -> Log ----> Machine   a live batch system from an instant on
//	                        Machine -> Snapshot -> Profile (the scheduler's view)
package workload
