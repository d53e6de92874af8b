// Package rfql is the Request for Quotation Language: what a user asks of
// machines, before any of them has answered (002 §5.2).
//
// A document holds 1..256 requests, bought all or not at all. Reading and
// checking are two steps, and each has a type of its own:
//
//	bytes --Read--> Draft --Check--> Document --XML--> bytes
//	bytes ------------Parse--------> Document
//
// A Draft is a document of the right form whose meaning may be wrong: it ends
// before it starts, say. It can also be built by hand, field by field. A
// Document was checked, has no exported fields and is the only thing that may
// be sent, quoted or bought. What is wrong is told as Faults, each with its
// line, its term, what was found and what is allowed.
//
// The form is that of the first implementation and is described by rfql.xsd
// and ramp.xsd, which Schemas holds; Read refuses what they refuse. The package
// never reads a clock: who checks says what time it is.
package rfql
