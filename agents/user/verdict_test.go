package user_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// Who asks to look first has the word: nothing is said to the bank until then, and
// what was disputed stays so when the record is shown again.
func TestAnOwnerHasTheWordOnUsage(t *testing.T) {
	p := newPaying(t, true)
	q := p.record(0, nil)
	if got := p.verdicts(p.receive(markettest.Bank, q), q); len(got) != 0 || !user.Waits(p.unit(0)) || user.Waits(p.unit(1)) {
		t.Fatalf("verdicts %v before its owner said a word; %+v", got, p.unit(0))
	}
	p.restart()
	if out := p.receive("", message.OwnerWord{ID: "p", Unit: 1, Why: "the other one"}); len(out.Send)+len(out.Save) != 0 {
		t.Fatalf("a word on a unit that has no record sends %+v", out.Send)
	}
	if out := p.receive(markettest.Bank, message.OwnerWord{ID: "p", Unit: 0, Why: "not the owner"}); len(out.Send)+len(out.Save) != 0 {
		t.Fatalf("anybody's word counts: %+v", out.Send)
	}
	for range 2 {
		if got := p.verdicts(p.receive("", message.OwnerWord{ID: "p", Unit: -1, Why: "it printed nothing"}), q); len(got) != 1 || got[0] {
			t.Fatalf("verdicts %v", got)
		}
	}
	p.restart()
	if got := p.verdicts(p.receive(markettest.Bank, q), q); len(got) != 1 || got[0] || p.unit(0).Dispute != "it printed nothing" {
		t.Fatalf("shown again: verdicts %v; %+v", got, p.unit(0))
	}
	if out := p.receive("", message.OwnerWord{ID: "p", Unit: 0, Record: "another", Agree: true}); len(out.Send)+len(out.Save) != 0 {
		t.Errorf("a record that its owner has not seen: %+v", out)
	}
	if got := p.verdicts(p.receive("", message.OwnerWord{ID: "p", Unit: 0, Record: p.unit(0).Record, Agree: true}), q); len(got) != 1 || !got[0] || p.unit(0).Dispute != "" || user.Waits(p.unit(0)) {
		t.Fatalf("it gives in: verdicts %v; %+v", got, p.unit(0))
	}
	bad := p.record(1, func(n *contract.JobRecord) { n.Due++ })
	if got := p.verdicts(p.receive(markettest.Bank, bad), bad); len(got) != 1 || got[0] {
		t.Fatalf("what the contract does not allow is left to its owner: %v", got)
	}
}

// A word is said again until the bank has answered it, also after a restart: silence
// would agree. What the bank never takes is told.
func TestAWordIsSaidUntilTheBankHasAnswered(t *testing.T) {
	for _, ask := range []bool{false, true} {
		p := newPaying(t, ask)
		q := p.record(1, nil)
		if !ask {
			q = p.record(1, func(n *contract.JobRecord) { n.Due++ })
		}
		p.receive(markettest.Bank, q)
		if ask {
			p.receive("", message.OwnerWord{ID: "p", Unit: 1, Why: "it printed nothing"})
		}
		said := func(when string, want int) {
			t.Helper()
			p.now = p.now.Add(10 * time.Minute)
			if got := p.verdicts(p.save(p.role.Wake(p.now)), q); len(got) != want || want > 0 && got[0] {
				t.Fatalf("ask %t, %s: verdicts %v, want %d", ask, when, got, want)
			}
		}
		said("unanswered", 1)
		p.restart()
		said("after a restart", 1)
		for _, code := range []protocol.Code{protocol.CodeMismatch, protocol.CodeUnknown} {
			p.answered(message.WordDispute, message.Refused(code, "as of a bank that was restored"))
			said("the bank has lost the record", 1)
		}
		if p.unit(1).Word != message.WordDispute || user.Waits(p.unit(1)) {
			t.Fatalf("it notes %+v", p.unit(1))
		}
		p.answered(message.WordDispute, p.receipt(markettest.Bank, nil, nil))
		said("answered", 0)
		if u := p.unit(1); u.Word != "" || u.Heard != message.WordDispute || u.Dispute == "" || user.Waits(u) {
			t.Fatalf("it notes %+v", u)
		}
		if ask {
			p.receive("", message.OwnerWord{ID: "p", Unit: 1, Agree: true})
			p.answered(message.WordAgree, message.Refused(protocol.CodeExpired, "a dispute was due by noon"))
			said("refused", 0)
			row, err := user.ReadRow(p.store[user.TablePurchases]["p"])
			p.must(err)
			if want := "unit 2: the bank refused the verdict on its usage: a dispute was due by noon"; row.Purchase.Why != want {
				t.Fatalf("it says %q, want %q", row.Purchase.Why, want)
			}
		}
	}
}

// answered is the bank's answer to a word on unit 1.
func (p *paying) answered(word message.Word, body protocol.Body) {
	p.save(p.role.Receive(p.now, protocol.Message{
		Performative: protocol.Inform, Sender: p.cast.ID(markettest.Bank), Conversation: "p", InReplyTo: "verdict-1-" + string(word), Body: body,
	}))
}

// disputed has a record on unit 1 that its owner has disputed.
func disputed(t *testing.T) (*paying, message.JobReport) {
	p := newPaying(t, true)
	q := p.record(1, nil)
	p.receive(markettest.Bank, q)
	p.receive("", message.OwnerWord{ID: "p", Unit: 1, Why: "it printed nothing"})
	return p, q
}

// What the bank says to one word is no answer to the next.
func TestTheAnswerToAnEarlierWordIsNotThatToALaterOne(t *testing.T) {
	p, q := disputed(t)
	p.receive("", message.OwnerWord{ID: "p", Unit: 1, Agree: true}) // lost on its way
	p.answered(message.WordDispute, p.receipt(markettest.Bank, nil, nil))
	p.now = p.now.Add(time.Minute)
	if got := p.verdicts(p.save(p.role.Wake(p.now)), q); len(got) != 1 || !got[0] {
		t.Fatalf("verdicts %v", got)
	}
}

// A seller shows what it has filed again and again. Once the bank has answered, that is
// no reason to speak; the bank's own showing is, since it has lost the word.
func TestAnAnsweredWordIsSaidAgainToTheBankAlone(t *testing.T) {
	for _, why := range []string{"it printed nothing", ""} { // a word without a reason is one, too
		p, q := disputed(t)
		p.receive("", message.OwnerWord{ID: "p", Unit: 1, Why: why})
		if got := p.verdicts(p.receive(markettest.Seller(2), q), q); len(got) != 1 || got[0] {
			t.Fatalf("unanswered, shown again by its seller: verdicts %v", got)
		}
		p.answered(message.WordDispute, p.receipt(markettest.Bank, nil, nil))
		p.restart()
		if out := p.receive(markettest.Seller(2), q); len(out.Send)+len(out.Save) != 0 {
			t.Fatalf("shown again by its seller: it sends %+v, and saves %d", out.Send, len(out.Save))
		}
		if got := p.verdicts(p.receive(markettest.Bank, q), q); len(got) != 1 || got[0] || p.unit(1).Word != message.WordDispute {
			t.Fatalf("shown again by the bank: verdicts %v; %+v", got, p.unit(1))
		}
	}
}

// The last reason that an owner gives is kept.
func TestTheLastReasonCounts(t *testing.T) {
	p, _ := disputed(t)
	p.receive("", message.OwnerWord{ID: "p", Unit: 1, Why: "it printed too much"})
	if u := p.unit(1); u.Dispute != "it printed too much" {
		t.Fatalf("its journal has %q", u.Dispute)
	}
}

// Of two records of one unit the one that the bank shows counts; a dispute of the first is
// one of the other.
func TestTheBanksRecordCounts(t *testing.T) {
	p, first := disputed(t)
	other := p.record(1, func(n *contract.JobRecord) { n.Measured = protocol.MeasuredSlot })
	if out := p.receive(markettest.Seller(2), other); len(out.Send)+len(out.Save) != 0 {
		t.Fatalf("its seller shows another: it sends %+v", out.Send)
	}
	if got := p.verdicts(p.receive(markettest.Bank, other), other); len(got) != 1 || got[0] || p.unit(1).Dispute != "it printed nothing" {
		t.Fatalf("the bank shows another: verdicts %v; %+v", got, p.unit(1))
	}
	if p.unit(1).Measured == first.Signed.Note.Measured {
		t.Fatal("it shows the first")
	}
}
