// Package rfql is the Request for Quotation Language, in which a user requests
// computing time (002 §5.2).
//
// A document holds 1..256 requests, bought all or not at all. Reading and checking are
// two steps, each with its own type:
//
//	bytes --Read--> Draft --Check--> Document --XML--> bytes
//	bytes ------------Parse--------> Document
//
// A Draft has the right form but may be wrong: it may end before it starts. It can also
// be built field by field. A Document was checked and has no exported fields; only a
// Document may be sent, quoted or bought. Errors are Faults, each with its line, its
// term, the value found and the values allowed.
//
// The form is that of the first implementation. Schemas holds its schemas, rfql.xsd and ramp.xsd,
// and Read refuses what they refuse. The package never reads a clock: callers pass the time.
package rfql
