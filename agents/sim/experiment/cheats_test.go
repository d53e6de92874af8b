package experiment

import (
	"strings"
	"time"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/message"
)

// cheat is an index that changes what its server answers to users. Package mutants has a mutant
// for each kind.
type cheat struct {
	agents.Role
	change func(now time.Time, c *cheat, m protocol.Message) []protocol.Message
	late   []protocol.Message
	due    time.Time
}

// Receive changes what the server answers.
func (c *cheat) Receive(now time.Time, m protocol.Message) protocol.Output {
	return c.tamper(now, c.Role.Receive(now, m))
}

// Wake sends late answers, too.
func (c *cheat) Wake(now time.Time) protocol.Output {
	out := c.tamper(now, c.Role.Wake(now))
	if len(c.late) > 0 && !now.Before(c.due) {
		out.Send, c.late = append(out.Send, c.late...), nil
	}
	if len(c.late) > 0 {
		out.WakeAt = protocol.Earlier(out.WakeAt, c.due)
	}
	return out
}

func (c *cheat) tamper(now time.Time, out protocol.Output) protocol.Output {
	var sent []protocol.Message
	for _, m := range out.Send {
		if m.Protocol != protocol.ProtocolIndex || m.InReplyTo == "" { // what it says to users answers something
			sent = append(sent, m)
			continue
		}
		sent = append(sent, c.change(now, c, m)...)
	}
	out.Send = sent
	if len(c.late) > 0 {
		out.WakeAt = protocol.Earlier(out.WakeAt, c.due)
	}
	return out
}

// madeUp are rows of sellers that do not exist, at prices that nobody beats.
func madeUp() []message.IndexRow {
	var rows []message.IndexRow
	for i := range 64 {
		fp := strings.Repeat(string(rune('a'+i%26)), protocol.FingerprintLen-1) + string("abc"[i/26])
		rows = append(rows, message.IndexRow{Seller: fp, Start: 2, Min: 1, Cores: 1 << 20})
	}
	return rows
}

// cheats are what a dishonest index does to an answer, by kind.
func cheats() map[string]func(now time.Time, c *cheat, m protocol.Message) []protocol.Message {
	return map[string]func(now time.Time, c *cheat, m protocol.Message) []protocol.Message{
		"omits": func(_ time.Time, _ *cheat, m protocol.Message) []protocol.Message {
			switch b := m.Body.(type) {
			case message.IndexRows:
				b.Rows, b.Census = b.Rows[:min(2, len(b.Rows))], b.Census[:min(1, len(b.Census))]
				m.Body = b
			case message.Records:
				m.Body = message.Records{}
			}
			return []protocol.Message{m}
		},
		"invents": func(_ time.Time, _ *cheat, m protocol.Message) []protocol.Message {
			if b, ok := m.Body.(message.IndexRows); ok {
				b.Rows = madeUp()
				m.Body = b
			}
			return []protocol.Message{m}
		},
		"delays": func(now time.Time, c *cheat, m protocol.Message) []protocol.Message {
			c.late, c.due = append(c.late, m), now.Add(3*time.Second)
			return nil
		},
		"floods": func(_ time.Time, _ *cheat, m protocol.Message) []protocol.Message {
			list := []protocol.Message{m}
			for range 20 {
				m.Body = message.IndexRows{Rows: madeUp()}
				list = append(list, m)
			}
			return list
		},
	}
}
