// Package markettest puts a user, a bank and sellers into a world of package agents/sim, for tests
// that order single messages.
//
// A Market has no faults but those that its test places: the test may decide the fate of each
// message (Fate), crash a party at any Output (Crash), and keep a party down for a while (Kill).
// Every message takes some time, drawn from the seed, so any two may overtake each other. The same
// seed, faults and orders give the same run, message by message.
//
// Only the durable state of a party survives a crash. The batch systems are not part of their
// parties: they survive, and carry out requests from before the crash. Check compares journals,
// batch systems and ledger with each other, as protocol.md demands once faults have stopped.
//
// Package agents/sim/market is for whole markets over days, with random faults.
package markettest
