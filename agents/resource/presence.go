package resource

import (
	"fmt"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TablePresence has the highest counter that presences may use before the next save.
const TablePresence = "seller-presence"

const (
	presenceKey = "counter"
	// counterBlock presences share one saved record. A restart skips the rest of a
	// block, so that counters always rise.
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

// beat announces the resource to the market, and sets the time of the next presence.
func (r *Role) beat(now time.Time) protocol.Output {
	r.beatAt = now.Add(r.cfg.Heartbeat)
	out := r.announce(r.cfg.TTL)
	out.WakeAt = r.beatAt
	return out
}

// appear announces the resource for the first time, once its banks have listed what it has sold.
func (r *Role) appear(now time.Time) protocol.Output {
	if _, _, waits := r.promises.Unasked(); waits || r.leaving || !r.beatAt.IsZero() {
		return protocol.Output{}
	}
	return r.beat(now)
}

// Leave announces that the resource leaves the market. It makes no more offers and
// sends no more presences, but keeps its promises.
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
			Federation: r.cfg.Federation.Rules.Digest,
		},
	}}
	return out
}
