// Package protocol holds the nouns of the market: who speaks, what is sold,
// what is owed, and the one shape that every decision takes.
//
// An agent decides without I/O. It is told the time and what arrived, and it
// answers with an Output: what to save, what to send, when to be woken. This
// package never reads a clock, a socket, a file or a random source, and
// nothing in it knows how messages travel.
package protocol
