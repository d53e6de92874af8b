// Package protocol holds the nouns of the market: agents, slots, offers, money,
// messages, and the Output of a decision.
//
// An agent decides without I/O. Its role takes the time and a message, and returns an Output: what
// to save, what to send, when to wake it. This package never reads a clock, a socket, a file or a
// random source, and knows nothing about transport.
package protocol
