package user_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// paying is a user agent with one settled, metered purchase of two units, and all
// that it may be told of it.
type paying struct {
	t      *testing.T
	cast   *markettest.Cast
	cfg    user.Config
	role   *user.Role
	store  markettest.Store
	bundle contract.Verified
	now    time.Time
}

func newPaying(t *testing.T, ask bool) *paying { return newPayingFor(t, ask, protocol.Ramp{}) }

// newPayingFor has a contract with a price of shares as well.
func newPayingFor(t *testing.T, ask bool, q protocol.Ramp) *paying {
	p := &paying{t: t, cast: markettest.NewCast(t, 2), store: markettest.Store{}, now: markettest.Dawn}
	p.cfg = user.Config{Credential: p.cast.Credential(markettest.User), Trust: p.cast.Trust, AskUsage: ask}
	slot := protocol.Slot{Start: p.now.Add(time.Hour), End: p.now.Add(2 * time.Hour), Cores: 2}
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: "p", User: p.cast.ID(markettest.User), Bank: p.cast.ID(markettest.Bank), Currency: "CRD",
		Mode: protocol.ModeMetered, RFQ: strings.Repeat("0", 64), Total: 40 * protocol.Credit, Nonce: strings.Repeat("0", 32), SettleBy: p.now.Add(time.Minute),
	}
	view := user.Purchase{ID: "p", State: user.StateSettled, Settled: true, Mode: b.Mode, Bank: b.Bank, Total: b.Total, Rounds: []message.Round{}}
	for i := range 2 {
		seller := p.cast.ID(markettest.Seller(i + 1))
		b.Units = append(b.Units, protocol.BundleUnit{
			Unit: i, Seller: seller, Reservation: "r", Slot: slot, Price: 10 * protocol.Credit, Cost: 20 * protocol.Credit,
			Tariff: protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Hi: protocol.Core, Top: 10 * protocol.Credit}, Q: q},
		})
		view.Units = append(view.Units, user.Unit{Unit: i, Seller: seller, Cores: 2, Start: slot.Start, End: slot.End, Cost: 20 * protocol.Credit, State: user.StateSettled})
	}
	der, err := contract.Sign(p.cfg.Credential, b, p.now)
	p.must(err)
	p.bundle, err = contract.OpenBundle(der, p.cast.Trust, p.now)
	p.must(err)
	view.Contract = p.bundle.ID
	row, err := json.Marshal(user.Row{Purchase: view})
	p.must(err)
	p.save(protocol.Output{Save: []protocol.Record{{Table: user.TablePurchases, Key: "p", Value: row}}})
	p.now = slot.End
	p.restart()
	return p
}

func (p *paying) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *paying) restart() protocol.Output {
	var out protocol.Output
	var err error
	p.role, out, err = user.New(p.cfg, p.store, p.now)
	p.must(err)
	return p.save(out)
}

func (p *paying) save(out protocol.Output) protocol.Output {
	p.must(p.store.Append(out.Save))
	return out
}

func (p *paying) receive(from string, body protocol.Body) protocol.Output {
	m := protocol.Message{Performative: protocol.Inform, Protocol: protocol.ProtocolRequest, Conversation: "p", Body: body}
	if m.Sender = protocol.LocalControl; from != "" {
		m.Sender = p.cast.ID(from)
	}
	return p.save(p.role.Receive(p.now, m))
}

// record is what the seller of a unit has filed, with something changed.
func (p *paying) record(unit int, change func(n *contract.JobRecord)) message.JobReport {
	n := contract.JobRecord{
		Version: contract.NoteVersion, Contract: p.bundle.ID, Unit: unit, Seller: p.cast.ID(markettest.Seller(unit + 1)), Success: true,
		Usage: protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: 2 * protocol.Core}, Due: 10 * protocol.Credit, Ended: p.now.UTC(),
	}
	if change != nil {
		change(&n)
	}
	der, err := contract.SignNote(p.cast.Credential(n.Seller.Name()), n, p.now)
	p.must(err)
	v, err := contract.OpenNote[contract.JobRecord](der, p.cast.Trust, p.now)
	p.must(err)
	return message.JobReport{Bundle: p.bundle, Signed: v}
}

// verdicts are what is sent to the bank: whether each agrees.
func (p *paying) verdicts(out protocol.Output, about message.JobReport) []bool {
	p.t.Helper()
	hash, err := contract.RecordHash(about.Signed.Note)
	p.must(err)
	var list []bool
	for _, m := range out.Send {
		if v, ok := m.Body.(message.JobVerdict); ok {
			n := v.Signed.Note
			if n.Record != hash || n.Contract != p.bundle.ID || n.Unit != about.Signed.Note.Unit || n.User != p.role.ID() || m.Receivers[0] != p.cast.ID(markettest.Bank) {
				p.t.Fatalf("a verdict on something else, or to somebody else: %+v to %v", n, m.Receivers)
			}
			list = append(list, n.Agree)
		}
	}
	return list
}

func (p *paying) unit(i int) message.PurchasedUnit {
	row, err := user.ReadRow(p.store[user.TablePurchases]["p"])
	p.must(err)
	return row.View().Units[i]
}

// A record that the contract allows is countersigned, and any other disputed; the
// same record gets the same verdict whenever it is shown, also after a restart.
func TestUsageRecordsAreJudged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(n *contract.JobRecord)
		agree  bool
		why    string
	}{
		{"as the contract allows", nil, true, ""},
		{"nothing used", func(n *contract.JobRecord) { n.Usage, n.Due = protocol.Usage{}, 0 }, true, ""},
		{"measured by the accounts of the seller's batch system", func(n *contract.JobRecord) { n.Measured = protocol.MeasuredAccounting }, true, ""},
		{"more is due than it comes to", func(n *contract.JobRecord) { n.Due++ }, false, "10 is due by the contract, not 10.000001"},
		{"less is due", func(n *contract.JobRecord) { n.Due-- }, false, "10 is due by the contract"},
		{"more core time than two cores have", func(n *contract.JobRecord) { n.Usage.CPU, n.Due = 3*time.Hour, 20*protocol.Credit }, false, "2 cores and 1h0m0s cannot give 3h0m0s"},
		{"longer than its slot", func(n *contract.JobRecord) { n.Usage.Wall = 2 * time.Hour }, false, "cannot give"},
		{"a share of more cores than it has", func(n *contract.JobRecord) { n.Usage.Share++ }, false, "cannot give"},
		{"it ended before it can have used so much", func(n *contract.JobRecord) { n.Ended = n.Ended.Add(-30 * time.Minute) }, false, "before it can have used"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPaying(t, false)
			q := p.record(1, tc.change)
			for _, when := range []string{"at first", "again", "after a restart"} {
				if when == "after a restart" {
					p.restart()
				}
				if got := p.verdicts(p.receive(markettest.Bank, q), q); len(got) != 1 || got[0] != tc.agree {
					t.Fatalf("%s: verdicts %v", when, got)
				}
			}
			u := p.unit(1)
			if !strings.Contains(u.Dispute, tc.why) || (u.Dispute == "") != tc.agree || u.Usage == nil || *u.Usage != q.Signed.Note.Usage || u.Due != q.Signed.Note.Due || u.Measured != q.Signed.Note.Measured {
				t.Errorf("it notes %+v", u)
			}
			if p.unit(0).Usage != nil {
				t.Error("it notes it beside the other unit as well")
			}
		})
	}
}

// A guarantee that was broken is noted, and no ground for a dispute: what was missed
// costs nothing.
func TestABrokenGuaranteeIsShown(t *testing.T) {
	q := protocol.Ramp{Lo: protocol.Core, Hi: 2 * protocol.Core, Top: 4 * protocol.Credit}
	for _, tc := range []struct {
		name  string
		share int64
		due   protocol.Credits
		want  protocol.Guarantee
	}{
		{"kept", 2 * protocol.Core, 14 * protocol.Credit, protocol.Guarantee{Of: "share", Promised: protocol.Core, Had: 2 * protocol.Core, Kept: true}},
		{"broken", protocol.Core / 2, 10 * protocol.Credit, protocol.Guarantee{Of: "share", Promised: protocol.Core, Had: protocol.Core / 2}},
	} {
		p := newPayingFor(t, false, q)
		r := p.record(1, func(n *contract.JobRecord) { n.Usage.Share, n.Due = tc.share, tc.due })
		if got := p.verdicts(p.receive(markettest.Bank, r), r); len(got) != 1 || !got[0] {
			t.Errorf("%s: verdicts %v", tc.name, got)
		}
		p.restart()
		if g := p.unit(1).Guarantee; g == nil || *g != tc.want {
			t.Errorf("%s: it notes %+v", tc.name, g)
		}
	}
	p := newPaying(t, false)
	r := p.record(1, nil)
	p.receive(markettest.Bank, r)
	if g := p.unit(1).Guarantee; g != nil {
		t.Errorf("a contract without a promise: %+v", g)
	}
}

// Records that are another's are nobody's business: of a unit signed by another
// seller, of a contract that is not followed.
func TestRecordsOfOthersAreDropped(t *testing.T) {
	p := newPaying(t, false)
	other := p.record(0, func(n *contract.JobRecord) { n.Seller = p.cast.ID(markettest.Seller(2)) })
	if out := p.receive(markettest.Bank, other); len(out.Send)+len(out.Save) != 0 {
		t.Errorf("another seller's record: %+v", out.Send)
	}
	foreign := p.record(0, nil)
	foreign.Bundle.ID = protocol.ContractID(strings.Repeat("f", 64))
	if out := p.receive(markettest.Bank, foreign); len(out.Send)+len(out.Save) != 0 {
		t.Errorf("a record of another contract: %+v", out.Send)
	}
}

func (p *paying) receipt(by string, ends []protocol.UnitEnd, refunds []protocol.Refund) message.Decision {
	r := protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: p.cast.ID(by), Contract: p.bundle.ID, Outcome: protocol.OutcomeSettled, Entry: 7, Time: p.now.UTC(),
		User: p.role.ID(), Total: p.bundle.Bundle.Total, Currency: "CRD", Mode: protocol.ModeMetered, Ends: ends, Refunds: refunds,
	}
	der, err := contract.SignReceipt(p.cast.Credential(by), r, p.now)
	p.must(err)
	v, err := contract.OpenReceipt(der, p.cast.Trust, p.now)
	p.must(err)
	return message.Decision{Contract: p.bundle.ID, Outcome: r.Outcome, Receipt: &v}
}

// Units end as their bank's receipt says, once; another bank's convinces nobody.
func TestUnitsEndByTheBanksReceipt(t *testing.T) {
	p := newPaying(t, false)
	end := func(unit int, paid protocol.Credits, how protocol.End) protocol.UnitEnd {
		return protocol.UnitEnd{Unit: unit, Paid: paid, How: how, Entry: 8, Time: p.now.UTC()}
	}
	forged := p.receipt(markettest.Stranger, []protocol.UnitEnd{end(0, 0, protocol.EndFailed)}, nil)
	if p.receive(markettest.Stranger, forged); p.unit(0).State != user.StateSettled {
		t.Fatal("another bank's receipt ends a unit")
	}
	unchecked := p.receipt(markettest.Bank, []protocol.UnitEnd{end(0, 0, protocol.EndFailed)}, nil)
	unchecked.Receipt = &message.SignedReceipt{Receipt: unchecked.Receipt.Receipt}
	if p.receive(markettest.Bank, unchecked); p.unit(0).State != user.StateSettled {
		t.Fatal("a receipt that was not verified ends a unit")
	}
	first := p.receipt(markettest.Bank, []protocol.UnitEnd{end(0, 5*protocol.Credit, protocol.EndArbitrated)}, nil)
	for range 2 {
		p.receive(markettest.Bank, first)
	}
	row, err := user.ReadRow(p.store[user.TablePurchases]["p"])
	p.must(err)
	if u := row.Purchase.Units[0]; u.State != user.StateUnitEnded || u.Paid != 5*protocol.Credit || u.How != protocol.EndArbitrated || row.Purchase.RefundTotal != 15*protocol.Credit {
		t.Fatalf("it ended as %+v, %s free", u, row.Purchase.RefundTotal)
	}
	p.restart()
	out := p.receive(markettest.Bank, p.receipt(markettest.Bank, []protocol.UnitEnd{end(0, 5*protocol.Credit, protocol.EndArbitrated), end(1, 0, protocol.EndExpired)}, nil))
	if u := p.unit(1); u.State != string(protocol.EndExpired) || u.Paid != 0 || len(out.Save) == 0 {
		t.Fatalf("the second ended as %+v", u)
	}
	if late := p.restart(); len(late.Send) != 1 || late.Send[0].Receivers[0] != protocol.LocalHistory || !late.WakeAt.IsZero() {
		t.Fatalf("a purchase that is over is still followed: %+v", late)
	}
}

// A unit that its site cannot give is refunded by the bank without being asked.
func TestABrokenUnitIsRefunded(t *testing.T) {
	p := newPaying(t, false)
	p.receive(markettest.Bank, p.receipt(markettest.Bank, nil, []protocol.Refund{{Unit: 1, Amount: 20 * protocol.Credit, Entry: 8, Time: p.now.UTC()}}))
	if u := p.unit(1); u.State != user.StateCancelled || u.Paid != 0 {
		t.Fatalf("it ended as %+v", u)
	}
}

// Who hears nothing asks the bank: 30 s after the slot at first, then less and less
// often, and at least every ten minutes.
func TestAnAgentThatHearsNothingAsks(t *testing.T) {
	p := newPaying(t, false)
	at, asked := p.now.Add(30*time.Second), 0
	if early := p.role.Wake(at.Add(-time.Nanosecond)); len(early.Send) != 0 {
		t.Fatal("it asks too soon")
	}
	var gaps []time.Duration
	for range 12 {
		p.now = at
		out := p.save(p.role.Wake(p.now))
		for _, m := range out.Send {
			if q, ok := m.Body.(message.OutcomeQuery); ok && q.Contract == p.bundle.ID && m.Receivers[0] == p.cast.ID(markettest.Bank) {
				asked++
			}
		}
		gaps = append(gaps, out.WakeAt.Sub(p.now))
		at = out.WakeAt
	}
	if asked != 12 || gaps[0] != 30*time.Second || gaps[1] != time.Minute || gaps[11] != 10*time.Minute {
		t.Fatalf("asked %d times, after %v", asked, gaps)
	}
}
