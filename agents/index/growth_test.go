package index_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ramp/agents/index"
	"ramp/protocol"
	"ramp/protocol/message"
)

// yard is some servers and whoever writes to them. Messages arrive at once.
type yard struct {
	now     time.Time
	homes   []index.Home
	servers map[protocol.AgentID]*index.Server
	back    []protocol.Message // to others
}

func newYard(n, issuers int) *yard {
	y := &yard{now: noon, homes: homes(n, issuers), servers: map[protocol.AgentID]*index.Server{}}
	for _, h := range y.homes {
		y.servers[h.ID], _ = index.NewServer(h, nobody{}, noon)
	}
	y.meet()
	return y
}

func (y *yard) presence(h index.Home) message.Presence {
	return message.Presence{Agent: protocol.KindBank, TTL: protocol.MaxTTL, Index: 1, Issuer: h.Issuer}
}

// meet has all servers hear of each other.
func (y *yard) meet() {
	for _, h := range y.homes {
		for id, s := range y.servers {
			if id != h.ID {
				s.Receive(y.now, protocol.Message{Sender: h.ID, Body: y.presence(h)})
			}
		}
	}
}

func (y *yard) carry(out protocol.Output) {
	for _, m := range out.Send {
		for _, to := range m.Receivers {
			if s := y.servers[to]; s != nil {
				y.carry(s.Receive(y.now, m))
			} else {
				y.back = append(y.back, m)
			}
		}
	}
}

// put brings a seller's record to the homes of its shard, and of the splits that are near.
func (y *yard) put(n int) {
	r := record(n, 16, "ca")
	r.Issued = y.now
	var to []protocol.AgentID
	for _, fourths := range []int{3, 4, 5} {
		shard := index.Shards(r, func(protocol.Terms, int) int { return y.counted() * fourths / 4 }, 0)[0]
		to = append(to, index.Place(shard, y.homes, index.Replicas)...)
	}
	slices.Sort(to)
	y.carry(protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Request, Sender: r.Seller, Receivers: slices.Compact(to),
		Protocol: protocol.ProtocolIndex, Body: message.Records{List: []message.Record{r}},
	}}})
	y.back = nil
}

// counted is the median of what the servers count.
func (y *yard) counted() int {
	var list []int
	for _, s := range y.servers {
		n := 0
		for _, c := range s.Census() {
			n += c.Count
		}
		list = append(list, n)
	}
	return index.Median(list)
}

// find is a search of a buyer that knows all servers.
func (y *yard) find(cores int, name string) int {
	g := index.NewGuide()
	for _, h := range y.homes {
		g.Meet(y.now, h.ID, y.presence(h))
	}
	s, out := g.NewSearch(y.now, index.Wanted{Self: id("buyer", 1), Conversation: name, Terms: crd, Cores: []int{cores}, Rounds: 3, Ceiling: 70 * protocol.Credit, Objective: protocol.ObjectiveCost})
	for y.carry(out); len(y.back) > 0; {
		m := y.back[0]
		y.back = y.back[1:]
		y.carry(s.Receive(y.now, m))
	}
	return len(s.Found())
}

// A search ends where no index is known, and where no seller is large enough.
func TestASearchForWhatNobodyHasEnds(t *testing.T) {
	if n := newYard(0, 1).find(16, "alone"); n != 0 {
		t.Errorf("%d sellers found without an index", n)
	}
	y := newYard(3, 3)
	for n := range 20 {
		y.put(n)
	}
	y.now = y.now.Add(index.Beat)
	y.meet()
	for _, h := range y.homes {
		y.carry(y.servers[h.ID].Wake(y.now))
	}
	if some, none := y.find(16, "some"), y.find(1<<14, "none"); some == 0 || none != 0 {
		t.Errorf("%d sellers of 16 cores found, %d of 16,384", some, none)
	}
}

// A class that outgrows its shard is split, slowly, or at once when a whole market comes back.
// Until all sellers have moved, buyers find them where they are, and the servers count them all.
func TestNobodyIsLostWhileAShardIsSplit(t *testing.T) {
	for name, aMinute := range map[string]int{"slowly": 100, "at once": 4060} {
		t.Run(name, func(t *testing.T) { testSplit(t, aMinute, 4060) })
	}
}

// testSplit has so many sellers come in a minute, up to most, who renew their records every ten.
func testSplit(t *testing.T, aMinute, most int) {
	y := newYard(9, 3)
	for minute := range 50 {
		for n := range min(aMinute*(minute+1), most) {
			if n/aMinute == minute || minute > 0 && (minute-n/aMinute+n)%10 == 0 { // new, or renewed
				y.put(n)
			}
		}
		y.now = y.now.Add(index.Beat)
		y.meet()
		for _, h := range y.homes {
			y.carry(y.servers[h.ID].Wake(y.now))
		}
		if minute < 5 {
			continue
		}
		if n, want := y.counted(), min(aMinute*(minute-2), most); n < want || n > min(aMinute*(minute+1), most) {
			t.Errorf("minute %d: %d sellers are counted, want %d", minute, n, want)
		}
		if n := y.find(16, fmt.Sprint(minute)); n < index.Shortlist {
			t.Errorf("minute %d: a search finds %d sellers, want %d", minute, n, index.Shortlist)
		}
	}
}
