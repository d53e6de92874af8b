package bank

import (
	"fmt"
	"strconv"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// TablePresence has the counter of the bank's presence.
const TablePresence = "presence"

// beacon owns the bank's presence: its counter, and when it is sent next.
type beacon struct {
	cfg     Config
	ledger  *ledger.Ledger
	counter uint64
	next    time.Time
}

// load restores the counter. A backup has an old one, which nobody would listen
// to, so it begins at the clock at least.
func (b *beacon) load(t protocol.Tables, now time.Time) error {
	b.counter = uint64(max(now.UnixMicro(), 0))
	return t.Each(TablePresence, func(_ string, value []byte) error {
		n, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil {
			return fmt.Errorf("presence counter: %w", err)
		}
		b.counter = max(b.counter, n+1) // the leaving presence of the last run was not saved
		return nil
	})
}

func (b *beacon) beat(now time.Time) protocol.Output {
	b.counter++
	b.next = now.Add(b.cfg.Heartbeat)
	p := message.Presence{
		Agent: protocol.KindBank, TTL: max(protocol.PresenceTTL, 7*b.cfg.Heartbeat/2), Counter: b.counter,
		Modes: b.modes(), Recovering: b.ledger.Backup(),
	}
	for _, c := range b.cfg.Currencies {
		terms := protocol.Terms{Bank: b.cfg.ID, Currency: c}
		p.Terms = append(p.Terms, terms)
		if b.ledger.Policy(c).Kind == ledger.PolicyBarter {
			p.After = append(p.After, terms)
		}
	}
	return protocol.Output{
		Save:   []protocol.Record{{Table: TablePresence, Key: "counter", Value: []byte(strconv.FormatUint(b.counter, 10))}},
		Send:   []protocol.Message{b.presence(p)},
		WakeAt: b.next,
	}
}

// modes are those in which at least one currency is paid. Barter pays only after
// the fact; the presence says which currencies are bartered.
func (b *beacon) modes() []protocol.Mode {
	late := []protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered}
	for _, c := range b.cfg.Currencies {
		if b.ledger.Policy(c).Kind != ledger.PolicyBarter {
			return append([]protocol.Mode{protocol.ModeOnReservation}, late...)
		}
	}
	return late
}

func (b *beacon) leave() protocol.Output {
	b.counter++
	return protocol.Output{Send: []protocol.Message{b.presence(message.Presence{Agent: protocol.KindBank, Counter: b.counter})}}
}

func (b *beacon) presence(p message.Presence) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Sender: b.cfg.ID, Receivers: []protocol.AgentID{protocol.Everyone},
		Protocol: protocol.ProtocolPresence, Conversation: "presence", Body: p,
	}
}
