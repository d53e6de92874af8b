// Package reserve decides how a bundle is voted on, signed and settled: all of
// its units, or none (002 §5.1.1 steps 5 to 10, made to hold under crashes).
//
// A Coordinator is the user's side and a Participant a seller's. Both are state
// machines: told the time and what arrived, they answer with what to save and
// then to send, and never read a clock, a socket or a random source. Neither
// decides: the record of the bank that the bundle names does, and both ask until
// they hold its signed receipt.
//
// Before a seller signs it may forget, and its timer does; once it has signed it
// keeps the slot until the bank has spoken.
package reserve
