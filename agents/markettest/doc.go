// Package markettest is a whole market in one goroutine, for tests: real user,
// resource and bank roles, real bytes, real signatures, a virtual clock, and
// stores and batch systems in memory.
//
// A Market delivers what was sent in an order drawn from its seed: every message
// takes some time, so any two may overtake each other. A test may decide the
// fate of each message (Fate), crash a party at any Output before or after its
// save or its sends (Crash), and take a party away for a while (Away). The same
// seed, faults and orders give the same run, message by message.
//
//	Buy, Tell --> role --Output--> save --> send --seal--> bytes --open--> role
//
// What is durable survives a crash; everything else of a party does not. The
// batch systems are not part of their parties: they survive, and do what they
// were asked before the crash. Check compares journals, batch systems and ledger
// with each other, as protocol.md demands once faults have stopped.
//
// Package agents/sim does all this for whole markets over days, with a network,
// disks and weather. This one stays for what a test must order message by message.
package markettest
