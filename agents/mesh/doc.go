// Package mesh carries messages between agents over libp2p: it is the
// agents.Transport of real daemons.
//
// Who sent a message is never read from a field. A host is made from the private
// key of its agent's certificate, so the channel proves the key, and the first
// frame on every stream is the certificate chain that gives the key its name.
// Peers without a valid credential are dropped, and those that send too much, or
// nonsense, are cut off for a while; all others go on.
//
// Rounds and commits go over one long-lived stream per direction and pair of
// agents, in order; presences, and calls to more sellers than one calls one by
// one, go by gossip:
//
//	/ramp/acl/1            card, then frames: messages to this agent
//	/ramp/presence/1       card and presence, both ways: two agents meet
//	/ramp/introductions/1  whom the answering agent is connected to (a hint)
//	/ramp/clock/1          what time the answering agent's clock shows
//	/ramp/enrolment/1      card, request, answer: the one thing that peers without
//	                       a credential may do, with banks that allow it
//	ramp/presence/1        gossip: card and presence
//	ramp/cfp/1             gossip: card and call for proposals
//
// A card is an agent's certificate chain and addresses. A frame is its length as
// a varint, and that many bytes. Every wait, queue and table has its bound in
// limits.go. Delivery is at most once when all goes well; after a lost stream a
// message may arrive twice, or not at all and unreported if it had left this
// process: roles have deadlines for that.
package mesh
