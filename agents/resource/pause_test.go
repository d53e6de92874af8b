package resource_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/message"
)

// calls asks for an offer and returns why there is none; "" if there is one.
func (s *site) calls(a *agents) protocol.Code {
	s.tb.Helper()
	doc := document(10, s.now.Add(time.Hour), s.now.Add(3*time.Hour))
	out := s.role.Receive(s.now, protocol.Message{
		Performative: protocol.CFP, Sender: a.id("ann"), Conversation: "c" + s.now.Format(time.RFC3339Nano),
		Body: message.CallForProposals{Round: 1, Document: doc, Terms: s.cfg.Terms, Modes: []protocol.Mode{protocol.ModeOnReservation}},
	})
	switch body := out.Send[0].Body.(type) {
	case message.Refusal:
		return body.Reasons[0].Code
	case message.Proposal:
		return ""
	}
	s.tb.Fatalf("answer %+v", out.Send[0].Body)
	return ""
}

func (s *site) wants(a *agents, code protocol.Code, sales message.Sales) message.ResourceStatus {
	s.tb.Helper()
	st := s.role.Status(s.now)
	if got := s.calls(a); got != code || st.Sales != sales {
		s.tb.Fatalf("a call is refused with %q, the status says %s (%s); want %q and %s", got, st.Sales, st.Why, code, sales)
	}
	return st
}

func (s *site) down(why string) {
	s.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: message.QueueDown{Since: s.now, Why: why}})
}

func (s *site) up() {
	s.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: s.batch.state(s.now)})
}

func TestADrainOutlivesARestartAndHonoursWhatIsSold(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	s.wants(a, "", message.SalesOpen)
	s.carryOut(s.role.Drain(s.now, "new cooling"))
	since := s.role.Status(s.now).Since
	s.pass(time.Minute)
	s.carryOut(s.role.Drain(s.now, ""))
	s.start()
	st := s.wants(a, protocol.CodeDraining, message.SalesDrained)
	if !st.Since.Equal(since) || !strings.Contains(st.Why, "new cooling") {
		t.Fatalf("drained since %s because %q, want since %s and the reason", st.Since, st.Why, since)
	}
	if st.Slots.Sold != 1 || len(s.batch.slots) != 1 {
		t.Fatalf("sold %d, in the batch system %v: want the one slot kept", st.Slots.Sold, s.batch.slots)
	}
	s.carryOut(s.role.Resume())
	s.start()
	s.wants(a, "", message.SalesOpen)
}

func TestWhileTheMachineIsHinderedSalesPause(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	s.role.Hinder(s.now, "12 MB free")
	since := s.now
	s.pass(time.Minute)
	s.role.Hinder(s.now, "11 MB free")
	st := s.wants(a, protocol.CodeUnavailable, message.SalesPaused)
	if st.Why != "11 MB free" || !st.Since.Equal(since) || st.Slots.Sold != 1 {
		t.Fatalf("status %+v, want that it is paused since %s for the last reason, and the slot kept", st, since)
	}
	s.role.Hinder(s.now, "")
	s.wants(a, "", message.SalesOpen)
}

func TestWhileTheBatchSystemIsAwaySalesPause(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	s.down("squeue: exit code 1: slurm_load_jobs error")
	st := s.wants(a, protocol.CodeUnavailable, message.SalesPaused)
	if st.Queue.State != "down" || !strings.Contains(st.Why, "slurm_load_jobs") || !st.Since.Equal(s.now) {
		t.Fatalf("status %+v, want down since now and why", st)
	}
	s.down("still")
	s.up()
	if st := s.wants(a, "", message.SalesOpen); st.Queue.State != "up" || st.Slots.Sold != 1 {
		t.Fatalf("status %+v, want it up and the slot sold", st)
	}
}

// A slot in which no job may last as long as it is refused, until the batch system says
// otherwise.
func TestASlotLongerThanAnyJobIsNotOffered(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	s.wants(a, "", message.SalesOpen)
	s.pass(time.Second)
	bounded := s.batch.state(s.now)
	bounded.Longest = time.Hour - time.Second
	s.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: bounded})
	s.wants(a, protocol.CodeWindow, message.SalesOpen)
	s.pass(time.Second)
	s.role.Retune(s.cfg)
	s.wants(a, protocol.CodeWindow, message.SalesOpen)
	lines, err := s.role.Check(s.now, document(10, s.now.Add(time.Hour), s.now.Add(3*time.Hour)), 1)
	if err != nil || len(lines) != 1 || lines[0].Reason == nil || !strings.Contains(lines[0].Reason.Note, "59m59s") || len(lines[0].Reason.Hints) > 0 {
		t.Fatalf("%+v, %v; want a refusal that says how long, and no later start", lines, err)
	}
	s.pass(time.Second)
	s.up()
	s.wants(a, "", message.SalesOpen)
}

func TestAnOldStateIsNotSoldOn(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s := newSite(t, a.config())
	s.now = s.now.Add(resource.MaxStale)
	s.wants(a, "", message.SalesOpen)
	s.now = s.now.Add(time.Second)
	s.wants(a, protocol.CodeUnavailable, message.SalesPaused)
	s.up()
	s.wants(a, "", message.SalesOpen)
}

func TestASilentBankPausesSalesUntilItIsHeard(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s := newSite(t, a.config())
	hear := func(from string, kind protocol.Kind, ttl time.Duration) {
		s.receive(protocol.Message{Performative: protocol.Inform, Sender: a.id(from), Body: message.Presence{Agent: kind, TTL: ttl}})
	}
	hear("ann", protocol.KindBank, time.Minute) // not one that the site deals with
	s.pass(time.Hour)
	if st := s.wants(a, "", message.SalesOpen); st.Banks[0].Reachable != nil {
		t.Fatalf("bank %+v, want nothing known of it", st.Banks[0])
	}
	hear("bank", protocol.KindBank, time.Minute)
	s.pass(2 * time.Minute)
	if st := s.wants(a, "", message.SalesOpen); !*st.Banks[0].Reachable {
		t.Fatalf("bank %+v, want it reachable", st.Banks[0])
	}
	s.pass(2 * time.Hour)
	if st := s.wants(a, protocol.CodeUnavailable, message.SalesPaused); *st.Banks[0].Reachable {
		t.Fatalf("bank %+v, want it away", st.Banks[0])
	}
	hear("bank", protocol.KindBank, time.Minute)
	s.wants(a, "", message.SalesOpen)
}

// A site that asks for a currency that its bank does not keep sells nothing, and is told.
func TestACurrencyThatItsBankDoesNotKeepIsTold(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s := newSite(t, a.config())
	ours := a.config().Terms[0]
	for currency, lacks := range map[string]bool{"OTHER": true, ours.Currency: false} {
		s.receive(protocol.Message{Performative: protocol.Inform, Sender: a.id("bank"), Body: message.Presence{
			Agent: protocol.KindBank, TTL: time.Minute, Terms: []protocol.Terms{{Bank: ours.Bank, Currency: currency}}}})
		if st := s.role.Status(s.now); st.Banks[0].NotKept != lacks {
			t.Errorf("the bank keeps %s: %+v", currency, st.Banks[0])
		}
	}
}

func TestAReasonToDrainHasNothingThatATerminalObeys(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "bank")
	s, _, _ := trade(t, a, 0, false, false)
	s.carryOut(s.role.Drain(s.now, "a\nb\x1b[31m"+strings.Repeat("é", protocol.MaxName)))
	why := s.role.Status(s.now).Why
	if !strings.Contains(why, "a b [31mé") || strings.ContainsAny(why, "\n\x1b") || !utf8.ValidString(why) {
		t.Fatalf("drained because %q", why)
	}
}
