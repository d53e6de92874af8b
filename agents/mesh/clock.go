package mesh

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"ramp/protocol"
)

// maxClocks is how many agents are asked for the time.
const maxClocks = 16

// Clock is how another agent's clock stands.
type Clock struct {
	Agent  protocol.AgentID
	Ahead  time.Duration // of this one's; below zero: behind
	Within time.Duration // half the time that asking took: how exactly Ahead is known
}

// serveClock answers what time it is.
func (m *Mesh) serveClock(s network.Stream) error {
	if _, _, err := m.greet(s); err != nil {
		return err
	}
	w := bufio.NewWriterSize(s, smallBuffer)
	now := binary.BigEndian.AppendUint64(nil, uint64(m.cfg.Now().UnixNano()))
	if err := errors.Join(writeFrame(w, now), w.Flush()); err != nil {
		return err
	}
	return s.Close()
}

// Clocks asks up to maxClocks connected agents what time it is. Those that do not
// answer are left out. In order of agent.
func (m *Mesh) Clocks(ctx context.Context) []Clock {
	var ids []peer.ID
	for _, id := range m.host.Network().Peers() {
		if m.book.peer(id) != nil && len(ids) < maxClocks {
			ids = append(ids, id)
		}
	}
	var mu sync.Mutex
	var out []Clock
	m.each(ctx, ids, func(ctx context.Context, id peer.ID) {
		c, err := m.clock(ctx, id)
		if err != nil {
			m.cfg.Log.Debug("clock not told", "peer", id, "err", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		out = append(out, c)
	})
	slices.SortFunc(out, func(x, y Clock) int { return strings.Compare(string(x.Agent), string(y.Agent)) })
	return out
}

func (m *Mesh) clock(ctx context.Context, id peer.ID) (Clock, error) {
	s, w, err := m.dial(ctx, id, protocolClock, DialTimeout)
	if err != nil {
		return Clock{}, err
	}
	defer func() { _ = s.Reset() }() // it is at its end, or of no use
	if err := s.SetDeadline(time.Now().Add(DialTimeout)); err != nil {
		return Clock{}, err
	}
	asked := m.cfg.Now()
	if err := w.Flush(); err != nil {
		return Clock{}, err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	c, err := m.readCard(s, r)
	if err != nil {
		return Clock{}, err
	}
	b, err := takeFrame(r, 8)
	if err != nil || len(b) != 8 {
		return Clock{}, fmt.Errorf("clock of %s, %d bytes: %w", c.agent, len(b), errors.Join(err, errMalformed))
	}
	half := m.cfg.Now().Sub(asked) / 2
	theirs := time.Unix(0, int64(binary.BigEndian.Uint64(b)))
	return Clock{Agent: c.agent, Ahead: theirs.Sub(asked.Add(half)), Within: half}, nil
}

// Protocols are the stream protocols that this program speaks, with their versions.
func Protocols() []string {
	return []string{
		string(protocolACL), string(protocolPresence), string(protocolIntroductions), string(protocolEnrolment), string(protocolClock), string(protocolFiles),
	}
}
