package control

import (
	"reflect"
	"strings"
)

// Kind is a set of kinds of agents.
type Kind int

// The kinds of agents that may have a call.
const (
	User Kind = 1 << iota
	Resource
	Bank
	Every = User | Resource | Bank
)

// String names the kinds, as documents and flags do.
func (k Kind) String() string {
	var names []string
	for i, name := range []string{"user", "resource", "bank"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// KindOf is the kind of an agent by its name.
func KindOf(name string) Kind {
	for _, k := range []Kind{User, Resource, Bank} {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// Call is a row of the table of calls.
type Call struct {
	Path     string
	Kind     Kind         // of the agents that have it
	Reads    bool         // it changes nothing, so GET answers it too
	Streams  bool         // it answers one JSON value per change
	Browser  bool         // a page of the agent may make it
	About    string       // one line for the documents
	Question reflect.Type // struct{} if the call has no question
	Answer   reflect.Type
}

// None is the empty question or answer.
type None = struct{}

// Endpoint is a call with its types: the server answers it, the client makes it.
type Endpoint[Q, A any] struct{ *Call }
