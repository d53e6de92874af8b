package resource_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

func hash(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}

// trade plays one purchase to its end and returns the site and the bank. A
// buyer that falls silent says nothing after a crash.
func trade(tb testing.TB, a *agents, crashAt int, keep, silent bool) (*site, *buyer, *ledger) {
	tb.Helper()
	s := newSite(tb, a.config())
	s.crashAt, s.keep = crashAt, keep
	b := &buyer{agents: a, name: "ann", site: s}
	l := &ledger{agents: a, decided: map[protocol.ContractID]protocol.Receipt{}}
	for range 100 {
		if !silent || s.outputs < crashAt {
			b.step()
		}
		b.hear()
		l.work(s)
		b.hear()
		s.pass(time.Second)
		if b.sold && s.outputs > crashAt {
			break
		}
	}
	for range 5 { // what was left behind is cleaned up
		s.pass(time.Minute)
		l.work(s)
	}
	return s, b, l
}

// Whichever Output a crash loses, wholly or but for what it saved, in the end
// exactly one unit is sold, in the journal and in the batch system, and the bank
// has been shown what was promised.
func TestCrashAtEveryOutput(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	most := s.outputs
	for at := 1; at <= most; at++ {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("at output %d, saved %v", at, keep), func(t *testing.T) {
				s, b, l := trade(t, a, at, keep, false)
				if !b.sold {
					t.Fatal("the buyer never got its unit")
				}
				sold := map[string]bool{}
				for _, r := range s.role.Reservations() {
					if r.State == string(reserve.ClaimSold) {
						sold[r.ID] = true
					}
				}
				if len(sold) != 1 || len(s.batch.slots) != 1 {
					t.Fatalf("sold %v, in the batch system %v", sold, s.batch.slots)
				}
				for id := range s.batch.slots {
					if !sold[id] {
						t.Fatalf("the batch system holds %s, sold is %v", id, sold)
					}
				}
				settled := 0
				for _, r := range l.decided {
					if r.Outcome == protocol.OutcomeSettled {
						settled++
					}
				}
				if settled != 1 {
					t.Fatalf("%d contracts settled", settled)
				}
			})
		}
	}
}

// A crash after which the buyer says nothing more: what the bank settled is sold
// and in the batch system, and of anything else nothing is left.
func TestCrashAndSilence(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	for at := 1; at <= s.outputs; at++ {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("at output %d, saved %v", at, keep), func(t *testing.T) {
				s, _, l := trade(t, a, at, keep, true)
				settled := 0
				for _, r := range l.decided {
					if r.Outcome == protocol.OutcomeSettled {
						settled++
					}
				}
				sold := 0
				for _, r := range s.role.Reservations() {
					_, there := s.batch.slots[r.ID]
					if r.State != string(reserve.ClaimSold) || !there {
						t.Fatalf("%s is %s, in the batch system %v", r.ID, r.State, there)
					}
					sold++
				}
				if sold != settled || len(s.batch.slots) != sold {
					t.Fatalf("%d contracts settled, %d sold, %d in the batch system", settled, sold, len(s.batch.slots))
				}
			})
		}
	}
}

// Many buyers at once, some of whom stop half way: no instant is promised twice,
// journal and batch system agree in the end, and nothing unsold stays.
func TestNeverOversold(t *testing.T) {
	names := []string{"ann", "bob", "eve", "kim"}
	a := newAgents(t, append(names, "atlas", "bank")...)
	rapid.Check(t, func(rt *rapid.T) {
		cfg := a.config()
		s := newSite(t, cfg)
		s.batch.cores = rapid.IntRange(10, 40).Draw(rt, "cores")
		s.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: s.batch.state(s.now)})
		l := &ledger{agents: a, decided: map[protocol.ContractID]protocol.Receipt{}}
		var buyers []*buyer
		for range 8 {
			buyers = append(buyers, &buyer{agents: a, name: rapid.SampledFrom(names).Draw(rt, "name"), site: s})
		}
		for i, b := range buyers { // conversations of one user do not mix
			b.attempt = 100 * i
		}
		for range 60 {
			b := buyers[rapid.IntRange(0, len(buyers)-1).Draw(rt, "who")]
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				s.pass(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
			case 1:
				s.start()
			case 2:
				l.work(s)
			default:
				b.step()
				hearAll(s, buyers)
			}
			oversold(rt, s)
		}
		l.work(s)
		s.pass(3 * time.Minute)
		l.work(s)
		s.pass(time.Minute)
		agree(rt, s)
	})
}

// hearAll gives each buyer the answers of its own conversation.
func hearAll(s *site, buyers []*buyer) {
	all := s.sent
	for _, b := range buyers {
		s.sent = append([]protocol.Message(nil), all...)
		b.hear()
	}
	s.sent = nil
	for _, m := range all {
		if m.Receivers[0] == buyers[0].id("bank") {
			s.sent = append(s.sent, m)
		}
	}
}

func oversold(t *rapid.T, s *site) {
	for at := noon; at.Before(noon.Add(4 * time.Hour)); at = at.Add(10 * time.Minute) {
		cores := 0
		for _, r := range s.role.Reservations() {
			live := r.State == "held" || r.State == "countersigned" || r.State == "sold"
			if live && !at.Before(r.Slot.Start) && at.Before(r.Slot.End) {
				cores += r.Slot.Cores
			}
		}
		if cores > s.batch.cores {
			t.Fatalf("at %s %d of %d cores are promised", at, cores, s.batch.cores)
		}
	}
}

func agree(t *rapid.T, s *site) {
	for _, r := range s.role.Reservations() {
		_, there := s.batch.slots[r.ID]
		switch r.State {
		case "sold":
			if !there {
				t.Fatalf("%s is sold, but not in the batch system", r.ID)
			}
		case "freed":
			if there {
				t.Fatalf("%s is freed, but in the batch system", r.ID)
			}
		default:
			t.Fatalf("%s is %s in the end", r.ID, r.State)
		}
	}
}

func TestPresenceCountersAlwaysRise(t *testing.T) {
	s := newSite(t, newAgents(t, "atlas", "bank").config())
	for range 3 {
		s.pass(25 * time.Second)
		s.start()
		s.start() // before another heartbeat
	}
	s.carryOut(s.role.Leave())
	s.start()
	var last uint64
	beats, left := 0, 0
	for _, m := range s.sent {
		p, ok := m.Body.(message.Presence)
		if !ok {
			continue
		}
		if p.Counter <= last {
			t.Fatalf("counter %d after %d", p.Counter, last)
		}
		last = p.Counter
		if p.TTL == 0 {
			left++
		} else {
			beats++
		}
	}
	if beats != 14 || left != 1 {
		t.Fatalf("%d presences and %d leavings, want 14 and 1", beats, left)
	}
}

func TestNothingIsOfferedBlindly(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	role, _, err := resource.New(a.config(), store{}, noon)
	must(t, err)
	call := message.CallForProposals{Round: 1, Document: purchase, Terms: a.config().Terms, Modes: []protocol.Mode{protocol.ModeOnReservation}}
	m := protocol.Message{Performative: protocol.CFP, Sender: a.id("ann"), Conversation: "c", Body: call}
	refused := func(want protocol.Code) {
		t.Helper()
		out := role.Receive(noon, m)
		r, ok := out.Send[0].Body.(message.Refusal)
		if !ok || r.Reasons[0].Code != want {
			t.Fatalf("answer %+v, want refuse(%s)", out.Send[0].Body, want)
		}
	}
	refused(protocol.CodeUnavailable)
	if _, err := role.Check(noon, purchase, 1); !errors.Is(err, resource.ErrNotReady) {
		t.Fatalf("check: %v, want ErrNotReady", err)
	}
	role.Receive(noon, protocol.Message{Sender: protocol.LocalQueue, Body: message.QueueChanged{At: noon, Capacity: 100}})
	if p := role.Receive(noon, m).Send[0].Performative; p != protocol.Propose {
		t.Fatalf("answer %s, want propose", p)
	}
	role.Drain(noon, "maintenance")
	refused(protocol.CodeDraining)
}

func TestWhatIsNotUnderstoodIsSaidOnce(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s := newSite(t, a.config())
	for _, m := range []protocol.Message{
		{Performative: protocol.Request, Body: message.BalanceQuery{}},
		{Performative: protocol.Request, Body: message.Acceptance{}},
		{Performative: protocol.NotUnderstood, Body: message.Refused(protocol.CodeMalformed, "")},
		{Performative: protocol.Inform, Body: message.Presence{}},
	} {
		m.Sender, m.Conversation = a.id("ann"), "c"
		s.receive(m)
		s.receive(m)
	}
	got := s.take(a.id("ann"))
	if len(got) != 1 || got[0].Performative != protocol.NotUnderstood {
		t.Fatalf("answers %+v, want one not-understood", got)
	}
}

// Only the batch system may say what the batch system says.
func TestAStrangerCannotSpeakForTheBatchSystem(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	s.receive(protocol.Message{Performative: protocol.Inform, Sender: a.id("ann"), Body: message.QueueChanged{At: s.now, Capacity: 1}})
	s.receive(protocol.Message{Performative: protocol.Inform, Sender: a.id("ann"), Body: message.Released{ID: s.role.Reservations()[0].ID, OK: true}})
	if r := s.role.Reservations(); len(r) != 1 || r[0].State != "sold" || len(s.batch.slots) != 1 {
		t.Fatalf("reservations %+v", r)
	}
}

func TestWhyIsKept(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, b, _ := trade(t, a, 0, false, false)
	lines := s.role.Offers()
	if len(lines) != 1 || lines[0].Offer == nil || lines[0].Buyer != a.id("ann") || lines[0].Conversation != b.conversation {
		t.Fatalf("lines %+v", lines)
	}
	checked, err := s.role.Check(s.now, purchase, 3)
	must(t, err)
	if len(checked) != 3 || checked[0].Busy != 10 || checked[2].Offer.Items[0].Price != 46500000 {
		t.Fatalf("check says %+v", checked)
	}
}
