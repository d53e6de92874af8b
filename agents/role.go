package agents

import (
	"time"

	"ramp/protocol"
)

// Role is an agent: user, resource or bank. One goroutine owns it; it never
// blocks, and does nothing to the world but answer.
type Role interface {
	Receive(now time.Time, m protocol.Message) protocol.Output
	Wake(now time.Time) protocol.Output
}

// Transport carries messages to other agents.
type Transport interface {
	// Send queues m for its receivers and returns at once. What cannot be
	// delivered comes back as a failure from protocol.LocalMesh.
	Send(m protocol.Message)
}
