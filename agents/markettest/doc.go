// Package markettest runs a whole market in one goroutine, for tests: real user, resource and bank
// roles, real bytes, real signatures, a virtual clock, and stores and batch systems in memory.
//
// A Market delivers messages in an order drawn from its seed: every message takes some time, so any
// two may overtake each other. A test may decide the fate of each message (Fate), crash a party at
// any Output before or after its save or its sends (Crash), and keep a party down for a while
// (Kill). The same seed, faults and orders give the same run, message by message.
//
//	Buy, Tell --> role --Output--> save --> send --seal--> bytes --open--> role
//
// Only the durable state of a party survives a crash. The batch systems are not part of their
// parties: they survive, and carry out requests from before the crash. Check compares journals,
// batch systems and ledger with each other, as protocol.md demands once faults have stopped.
//
// Package agents/sim does all this for whole markets over days, with a network,
// disks and weather. This package is for tests that order single messages.
package markettest
