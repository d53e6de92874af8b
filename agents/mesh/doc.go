// Package mesh carries messages between agents over libp2p: it is the
// agents.Transport of real daemons.
//
// A message's sender is never read from a field. A host uses the private key of its agent's
// certificate, so the channel proves the key, and the first frame on every stream is the
// certificate chain that names the key's agent. Peers without a valid credential are dropped. Those
// that send too much, or nonsense, are cut off for a while, without effect on others.
//
// Rounds and commits use one long-lived stream per direction and pair of agents, in
// order. Presences, and calls to many sellers, go by gossip:
//
//	/ramp/acl/1            card, then frames: messages to this agent
//	/ramp/presence/1       card and presence, both ways: two agents meet
//	/ramp/introductions/1  the agents that the answering one is connected to (hints)
//	/ramp/clock/1          the answering agent's time
//	/ramp/files/1          card, then the files of jobs
//	/ramp/enrolment/1      card, request, answer: the only exchange for peers without
//	                       a credential, with banks that allow it
//	ramp/presence/1        gossip: card and presence
//	ramp/cfp/1             gossip: card and call for proposals
//
// A card is an agent's certificate chain and addresses. A frame is a length as a varint,
// then that many bytes. limits.go bounds every wait, queue and table. A message arrives
// once while its stream lives. If the stream breaks, it may arrive twice; or, if it had
// left this process, not at all and without a failure, which is why roles have deadlines.
package mesh
