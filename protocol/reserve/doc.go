// Package reserve decides how a bundle is voted on, signed and settled: all of its
// units, or none (002 §5.1.1 steps 5 to 10, made safe against crashes).
//
// A Coordinator is the user's side and a Participant a seller's. Both are state machines: they take
// the time and a message, and return records to save and then messages to send. They read no clock,
// no socket and no random source. Neither decides: the record of the bank that the bundle names
// does, and both ask until they hold its signed receipt.
//
// A seller may forget a hold before it signs, and its timer makes it. Once it has
// signed, it keeps the slot until the bank has decided.
//
// The package knows no auction. A Coordinator takes bids, and asks a Chooser for others
// when a seller refuses or is slow.
package reserve
