package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"ramp/agents"
	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/protocol/codec"
)

// askPrefix marks requests that commands send in their agent's name. The answers go to
// the command, not to the role.
const askPrefix = "ask-"

const askHint = "is it running? 'ramp doctor' finds the cause; the same command asks again"

// pending are the requests that await an answer.
type pending struct {
	mu      sync.Mutex
	waiting map[string]chan protocol.Message
	last    atomic.Uint64
}

// take passes an answer to the command that awaits it; false: the message is for the role.
func (p *pending) take(m protocol.Message) bool {
	tag := m.InReplyTo
	if m.Sender == protocol.LocalMesh {
		tag = m.ReplyWith
	}
	if !strings.HasPrefix(tag, askPrefix) {
		return false
	}
	p.mu.Lock()
	c := p.waiting[tag]
	p.mu.Unlock()
	if c != nil {
		select {
		case c <- m:
		default: // a second answer
		}
	}
	return true
}

// ask sends a request through the role's runner, which keeps the order of messages, and
// waits for the answer.
func (p *pending) ask(ctx context.Context, r *agents.Runner, m protocol.Message) (protocol.Message, error) {
	tag := fmt.Sprintf("%s%d", askPrefix, p.last.Add(1))
	answer := make(chan protocol.Message, 1)
	p.mu.Lock()
	p.waiting[tag] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, tag)
		p.mu.Unlock()
	}()
	m.ReplyWith = tag
	m.Conversation = cmp.Or(m.Conversation, tag)
	if _, err := codec.Encode(m); err != nil {
		return protocol.Message{}, exit.Fail(exit.Usage, "", "the question cannot be asked: %w", cmp.Or(errors.Unwrap(err), err))
	}
	if err := r.Do(ctx, sending(m)); err != nil {
		return protocol.Message{}, err
	}
	select {
	case got := <-answer:
		if got.Sender == protocol.LocalMesh {
			return got, exit.Fail(exit.Unreachable, askHint, "%s cannot be reached", m.Receivers[0].Name())
		}
		return got, nil
	case <-ctx.Done():
		return protocol.Message{}, exit.Fail(exit.Unreachable, askHint, "%s does not answer", m.Receivers[0].Name())
	}
}
