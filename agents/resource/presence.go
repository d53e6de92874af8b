package resource

import (
	"fmt"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TablePresence has the highest counter that a presence may bear before more
// are saved.
const TablePresence = "seller-presence"

const (
	presenceKey = "counter"
	// counterBlock presences share one saved record; a restart skips what was
	// left of a block, so that counters always rise.
	counterBlock = 1000
)

func (r *Role) readCounter(key string, value []byte) error {
	n, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return fmt.Errorf("journal: table %s: %s: %w", TablePresence, key, err)
	}
	r.counter, r.counted = n, n
	return nil
}

// beat tells the market that the resource is there, and what it is.
func (r *Role) beat(now time.Time) protocol.Output {
	r.beatAt = now.Add(r.cfg.Heartbeat)
	out := r.announce(r.cfg.TTL)
	out.WakeAt = r.beatAt
	return out
}

// appear tells the market for the first time that the resource is there: once it
// sells, that is, once its banks have told what it has sold.
func (r *Role) appear(now time.Time) protocol.Output {
	if _, _, waits := r.promises.Unasked(); waits || r.leaving || !r.beatAt.IsZero() {
		return protocol.Output{}
	}
	return r.beat(now)
}

// Leave tells the market that the resource goes. It makes no more offers and
// sends no more presences, but keeps what it has promised.
func (r *Role) Leave() protocol.Output {
	r.leaving = true
	r.beatAt = time.Time{}
	out := r.announce(0)
	r.learner.saved = time.Time{}
	out.Save = append(out.Save, r.learner.save(r.learner.looked)...)
	return out
}

func (r *Role) announce(ttl time.Duration) protocol.Output {
	var out protocol.Output
	r.counter++
	if r.counter > r.counted {
		r.counted = r.counter + counterBlock
		out.Save = []protocol.Record{{Table: TablePresence, Key: presenceKey, Value: []byte(strconv.FormatUint(r.counted, 10))}}
	}
	out.Send = []protocol.Message{{
		Performative: protocol.Inform, Sender: r.self, Receivers: []protocol.AgentID{protocol.Everyone},
		Protocol: protocol.ProtocolPresence, Conversation: "presence",
		Body: message.Presence{
			Agent: protocol.KindResource, Properties: r.cfg.Properties, Start: r.cfg.Price.Start, Min: r.cfg.Price.Min,
			Terms: r.cfg.Terms, Modes: r.cfg.Modes, TTL: ttl, Counter: r.counter,
		},
	}}
	return out
}
