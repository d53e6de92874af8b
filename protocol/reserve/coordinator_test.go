package reserve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The transcripts in testdata/coordinator are purchases by ann from the sellers atlas,
// bob and mint, paid at the bank. The next set of offers is the first line of the list
// with all fixed bids and without excluded ones. The transcripts print each Output:
// records, then messages.
func TestCoordinatorTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/coordinator", func(t *testing.T, path string) {
		d := &purchase{world: newWorld(t), t: t, sets: map[string][]protocol.Bid{}}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string { return d.run(td) })
	})
}

// purchase is a buyer after its auction, and the sellers and banks around it.
type purchase struct {
	*world
	t      *testing.T
	c      *reserve.Coordinator
	list   []string // sets of offers, best first
	sets   map[string][]protocol.Bid
	bundle contract.Verified // the last that was signed
	stored []byte            // its record
}

func (d *purchase) run(td *datadriven.TestData) string {
	defer func() {
		if r := recover(); r != nil {
			td.Fatalf(d.t, "%v", r)
		}
	}()
	switch td.Cmd {
	case "buy":
		return d.buy(td)
	case "vote", "refuse", "undeliverable", "countersign", "fail", "receipt", "decision", "voucher", "bank-refuses":
		return d.show(d.c.Receive(d.now, d.message(td)))
	case "wait":
		pause, err := time.ParseDuration(td.CmdArgs[0].Key)
		must(d.t, err)
		d.now = d.now.Add(pause)
		return d.show(d.c.Wake(d.now))
	case "abandon":
		return d.show(d.c.Abandon(d.now))
	case "annul":
		return d.show(d.c.Annul())
	case "restart":
		return d.restart()
	case "silences":
		var s strings.Builder
		for _, x := range d.c.TakeSilences() {
			fmt.Fprintf(&s, "%s in %s\n", d.name(x.Seller), x.Until.Sub(d.now))
		}
		return s.String()
	case "refusals":
		var s strings.Builder
		for _, r := range d.c.Refusals() {
			fmt.Fprintf(&s, "%s %s\n", r.Code, r.Note)
		}
		return s.String()
	}
	panic("unknown command " + td.Cmd)
}

func word(td *datadriven.TestData, key, otherwise string) string {
	for _, a := range td.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

// bid is an offer of one unit: "atlas.0" is unit 0 from atlas, "atlas.0+1" two
// units in one offer; "~" after it makes it start in two seconds, and "*" makes it
// another offer.
func (d *purchase) bid(s string) protocol.Bid {
	name, soon := strings.CutSuffix(strings.TrimRight(s, "*"), "~")
	seller, units, _ := strings.Cut(name, ".")
	o := protocol.Offer{ID: s, ValidUntil: dawn.Add(10 * time.Minute)}
	start := dawn.Add(time.Hour)
	if soon {
		start = dawn.Add(2 * time.Second)
	}
	for _, u := range strings.Split(units, "+") {
		it := protocol.Item{Unit: int(u[0] - '0'), Price: 10 * protocol.Credit, Cost: 40 * protocol.Credit,
			Slot: protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 4}}
		o.Items = append(o.Items, it)
		o.Cost += it.Cost
	}
	return protocol.Bid{Seller: d.id(seller), Offer: o}
}

func (d *purchase) set(line string) []protocol.Bid {
	var set []protocol.Bid
	for _, s := range strings.Fields(line) {
		set = append(set, d.bid(s))
	}
	return set
}

// buy reads one set of offers per line.
func (d *purchase) buy(td *datadriven.TestData) string {
	d.list = strings.Split(strings.TrimSpace(td.Input), "\n")
	var out protocol.Output
	cfg := d.config()
	doubted := strings.Split(word(td, "doubt", ""), ",")
	cfg.Doubted = func(id protocol.AgentID) bool { return slices.Contains(doubted, d.name(id)) }
	d.c, out = reserve.NewCoordinator(d.now, cfg, d.set(d.list[0]))
	return d.show(out)
}

func (d *purchase) config() reserve.CoordinatorConfig {
	return reserve.CoordinatorConfig{
		Self: d.id("ann"), Conversation: "c", Terms: protocol.Terms{Bank: d.id("bank"), Currency: "CRD"},
		Mode: protocol.ModeOnReservation, RFQ: strings.Repeat("0", 64), Hold: time.Minute, Settle: 30 * time.Second,
		Chooser: d, Sign: d.sign,
	}
}

// Choose makes the purchase its own auction.
func (d *purchase) Choose(_ time.Time, fixed []protocol.Bid, without func(protocol.Bid) bool) ([]protocol.Bid, bool) {
	for _, line := range d.list {
		set := d.set(line)
		has := func(b protocol.Bid) bool {
			return slices.ContainsFunc(set, func(x protocol.Bid) bool { return x.Key() == b.Key() })
		}
		isFixed := func(b protocol.Bid) bool {
			return slices.ContainsFunc(fixed, func(x protocol.Bid) bool { return x.Key() == b.Key() })
		}
		if slices.ContainsFunc(set, func(b protocol.Bid) bool { return without(b) && !isFixed(b) }) ||
			slices.ContainsFunc(fixed, func(b protocol.Bid) bool { return !has(b) }) {
			continue
		}
		return set, true
	}
	return nil, false
}

func (d *purchase) sign(b protocol.Bundle, now time.Time) (contract.Verified, error) {
	der, err := contract.Sign(d.agents["ann"], b, now)
	if err != nil {
		return contract.Verified{}, err
	}
	d.bundle, err = contract.OpenBundle(der, d.trust, now)
	return d.bundle, err
}

// message makes a message from=NAME.
func (d *purchase) message(td *datadriven.TestData) protocol.Message {
	m := protocol.Message{Sender: d.id(word(td, "from", "bank")), Conversation: "c"}
	switch td.Cmd {
	case "vote":
		m.Performative, m.InReplyTo, m.Body = protocol.Agree, word(td, "to", "vote")+"-"+word(td, "asked", word(td, "offer", "")), d.vote(td)
	case "refuse":
		m.Performative, m.InReplyTo = protocol.Refuse, word(td, "to", "vote")+"-"+word(td, "offer", "")
		m.Body = message.Refused(protocol.Code(word(td, "code", string(protocol.CodeBusy))), "the cores were taken")
	case "fail":
		m.Performative, m.InReplyTo = protocol.Performative(word(td, "as", string(protocol.Failure))), "confirm"
		m.Body = message.Refused(protocol.CodeExpired, "the hold is over")
	case "undeliverable":
		m.Performative, m.Sender, m.ReplyWith = protocol.Failure, protocol.LocalMesh, word(td, "tag", "")
		m.Body = message.Undeliverable{To: d.id(word(td, "to", ""))}
	case "countersign":
		m.Performative, m.Body = protocol.Confirm, message.Countersigned{Sale: d.sale(word(td, "by", word(td, "from", "")))}
	case "receipt":
		m.Performative, m.Body = protocol.Inform, d.receipt(td)
	case "voucher":
		m.Performative, m.InReplyTo, m.Body = protocol.Agree, "voucher", d.vouched(td)
	case "bank-refuses":
		m.Performative, m.InReplyTo, m.Body = protocol.Refuse, "voucher", message.Refused(protocol.Code(word(td, "code", string(protocol.CodeFunds))), "40 are missing")
	case "decision":
		m.Performative = protocol.Inform
		m.Body = message.Decision{Contract: d.bundle.ID, Outcome: protocol.Outcome(word(td, "is", ""))}
	}
	return m
}

func (d *purchase) vouched(td *datadriven.TestData) message.Vouched {
	m := protocol.Message{Sender: d.id("ann"), Conversation: "c"}
	v := *d.voucher(args{"voucher": "80", "until": "2m", "by": word(td, "by", "bank"), "for": word(td, "for", "c")}, m)
	if word(td, "unverified", "") != "" {
		v = contract.VerifiedNote[contract.Voucher]{Note: v.Note, Signer: v.Signer, DER: v.DER}
	}
	return message.Vouched{Signed: v}
}

// vote agrees to an offer, with reservations of its own names; but=… spoils it.
func (d *purchase) vote(td *datadriven.TestData) message.Vote {
	o := d.bid(word(td, "offer", "")).Offer
	hold, err := time.ParseDuration(word(td, "hold", "1m"))
	must(d.t, err)
	v := message.Vote{Offer: o.ID, HoldUntil: d.now.Add(hold)}
	for _, it := range o.Items {
		v.Reservations = append(v.Reservations, message.Reservation{Unit: it.Unit, ID: fmt.Sprintf("r%d-%s", it.Unit, word(td, "from", "")), Slot: it.Slot})
	}
	switch word(td, "but", "") {
	case "later":
		v.Reservations[0].Slot.Start = v.Reservations[0].Slot.Start.Add(time.Minute)
	case "smaller":
		v.Reservations[0].Slot.Cores--
	case "unit":
		v.Reservations[0].Unit = 7
	case "nameless":
		v.Reservations[0].ID = ""
	case "twice":
		v.Reservations = append(v.Reservations, v.Reservations[0])
	}
	return v
}

func (d *purchase) sale(by string) contract.Sale {
	der, err := contract.Countersign(d.agents[by], d.bundle, d.now)
	must(d.t, err)
	s, err := contract.OpenSale(der, d.trust, d.now)
	must(d.t, err)
	return s
}

// receipt is a decision signed by=NAME, of=another contract if so.
func (d *purchase) receipt(td *datadriven.TestData) message.Decision {
	by := word(td, "by", "bank")
	r := protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: d.id(by), Contract: d.bundle.ID, Outcome: protocol.Outcome(word(td, "is", "settled")),
		Entry: 1, Time: d.now, User: d.id("ann"), Total: d.bundle.Bundle.Total, Currency: "CRD",
	}
	if r.Outcome == protocol.OutcomeVoid {
		r.Total, r.Reason = 0, protocol.CodeSettleBy
	}
	if word(td, "of", "") == "another" {
		r.Contract = protocol.ContractID(strings.Repeat("1", 64))
	}
	der, err := contract.SignReceipt(d.agents[by], r, d.now)
	must(d.t, err)
	v, err := contract.OpenReceipt(der, d.trust, d.now)
	must(d.t, err)
	if word(td, "unverified", "") != "" {
		v = contract.VerifiedReceipt{Receipt: r, Signer: v.Signer, DER: der}
	}
	return message.Decision{Contract: d.bundle.ID, Outcome: r.Outcome, Receipt: &v}
}

// restart continues from the stored record alone.
func (d *purchase) restart() string {
	s, err := reserve.ReadSaved(d.stored)
	must(d.t, err)
	opened := reserve.Reopened{}
	opened.Bundle, err = contract.OpenBundle(s.Bundle, d.trust, s.SignedAt)
	must(d.t, err)
	for _, der := range s.Sales {
		sale, err := contract.OpenSale(der, d.trust, s.SignedAt)
		must(d.t, err)
		opened.Sales = append(opened.Sales, sale)
	}
	if len(s.Receipt) > 0 {
		r, err := contract.OpenReceipt(s.Receipt, d.trust, s.SignedAt)
		must(d.t, err)
		opened.Receipt = &r
	}
	cfg := d.config()
	cfg.Chooser = nil // nothing is chosen anew after a restart
	var out protocol.Output
	d.c, out = reserve.Resume(d.now, cfg, s, opened)
	return d.show(out)
}

func (d *purchase) show(out protocol.Output) string {
	var s strings.Builder
	for _, r := range out.Save {
		d.stored = r.Value
		saved, err := reserve.ReadSaved(r.Value)
		must(d.t, err)
		fmt.Fprintf(&s, "save %s %s, %d copies, receipt %v\n", r.Table, saved.State, len(saved.Sales), saved.Receipt != nil)
	}
	for _, m := range out.Hint {
		fmt.Fprintf(&s, "at once, %s to %s: %s\n", m.Performative, d.name(m.Receivers[0]), d.body(m))
	}
	for _, m := range out.Send {
		fmt.Fprintf(&s, "%s to %s: %s\n", m.Performative, d.name(m.Receivers[0]), d.body(m))
	}
	if !out.WakeAt.IsZero() {
		fmt.Fprintf(&s, "wake in %s\n", out.WakeAt.Sub(d.now))
	}
	return s.String() + d.c.State().String() + "\n"
}

func (d *purchase) body(m protocol.Message) string {
	switch b := m.Body.(type) {
	case message.Acceptance:
		with := ""
		if b.Voucher != nil {
			with = " with a voucher of " + b.Voucher.Note.Amount.String()
		}
		return fmt.Sprintf("hold %s for %s%s", b.Offer.ID, b.HoldUntil.Sub(d.now), with)
	case message.VoucherRequest:
		return fmt.Sprintf("voucher of %s for %s", b.Amount, b.Until.Sub(d.now))
	case message.Cancellation:
		return "cancel " + strings.Join(b.Reservations, " ")
	case message.Confirmation:
		return fmt.Sprintf("bundle of %d units for %s, settled in %s", len(b.Bundle.Bundle.Units), b.Bundle.Bundle.Total, b.Bundle.Bundle.SettleBy.Sub(d.now))
	case message.BundleCopy:
		return "prepare"
	case message.Settlement:
		return "copy of " + b.Sale.Seller.ID.Name()
	}
	return m.Body.Kind()
}
