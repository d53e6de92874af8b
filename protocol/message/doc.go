// Package message has the typed bodies of every message: what agents say to
// each other, and what a role says to its local correspondents.
//
// A body that arrived from another agent was bounded, parsed and, where it is
// signed, verified by codec.Open before a role sees it. Bodies say nothing
// about who may send them when: that is the machines' business.
package message
