// Package message defines the bodies of all messages: those between agents, and
// those between a role and its local correspondents.
//
// Before a role sees a body from another agent, codec.Open has bounded it, parsed it
// and verified its signatures. The roles decide who may send a body when.
package message
