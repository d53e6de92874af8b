// Package auction decides the N-round combinatorial reverse auction (002 §5.1.1).
//
// A Buyer calls for proposals round by round and picks the best set; a Seller
// answers every call. Both are state machines: they take the time and a message, and
// return the messages to send. They read no clock, no socket and no random source.
//
//	Buyer:  calling --round over, rounds left--> calling
//	        calling --last round over, a set satisfies--> awarded
//	        calling --last round over, none does--> best-offer (one round, ceilings lifted)
//	        best-offer --round over, some set--> closest
//	        best-offer --round over, nothing--> failed
package auction
