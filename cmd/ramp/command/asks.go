package command

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"ramp/agents"
	"ramp/protocol"
)

// askPrefix marks the questions that commands send in their agent's name; the
// answers go to the command, not to the role.
const askPrefix = "ask-"

// asks are the questions that await an answer.
type asks struct {
	mu      sync.Mutex
	waiting map[string]chan protocol.Message
	last    atomic.Uint64
}

func newAsks() *asks { return &asks{waiting: map[string]chan protocol.Message{}} }

// take keeps an answer that a command awaits from reaching the role.
func (a *asks) take(m protocol.Message) bool {
	tag := m.InReplyTo
	if m.Sender == protocol.LocalMesh {
		tag = m.ReplyWith
	}
	if !strings.HasPrefix(tag, askPrefix) {
		return false
	}
	a.mu.Lock()
	c := a.waiting[tag]
	a.mu.Unlock()
	if c != nil {
		select {
		case c <- m:
		default: // a second answer
		}
	}
	return true
}

// ask sends a question through the role's runner, so that it leaves in order,
// and waits for the answer.
func (a *asks) ask(ctx context.Context, r *agents.Runner, m protocol.Message) (protocol.Message, error) {
	tag := fmt.Sprintf("%s%d", askPrefix, a.last.Add(1))
	answer := make(chan protocol.Message, 1)
	a.mu.Lock()
	a.waiting[tag] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, tag)
		a.mu.Unlock()
	}()
	m.ReplyWith = tag
	if m.Conversation == "" {
		m.Conversation = tag
	}
	if err := r.Do(ctx, sending(m)); err != nil {
		return protocol.Message{}, err
	}
	select {
	case got := <-answer:
		if got.Sender == protocol.LocalMesh {
			return got, fail(exitUnreachable, "is it running? 'ramp doctor' looks closer; the same command asks again", "%s cannot be reached", m.Receivers[0].Name())
		}
		return got, nil
	case <-ctx.Done():
		return protocol.Message{}, fail(exitUnreachable, "is it running? 'ramp doctor' looks closer; the same command asks again", "%s does not answer", m.Receivers[0].Name())
	}
}
