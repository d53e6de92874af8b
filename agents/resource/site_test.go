package resource_test

import (
	"bytes"
	"fmt"
	mathrand "math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/rfql"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// agents are the credentials of a test market, made once: keys are slow.
type agents struct {
	trust *identity.Trust
	by    map[string]*identity.Credential
}

func newAgents(tb testing.TB, names ...string) *agents {
	tb.Helper()
	begin := noon.AddDate(-1, 0, 0)
	ca, err := identity.NewCA("Test CA", begin, 10*365*24*time.Hour, mathrand.NewChaCha8([32]byte{1}))
	must(tb, err)
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	must(tb, err)
	a := &agents{trust: trust, by: map[string]*identity.Credential{}}
	for _, name := range names {
		seed := [32]byte{2}
		copy(seed[1:], name)
		key, err := identity.NewKey(mathrand.NewChaCha8(seed))
		must(tb, err)
		cert, err := ca.Issue(name, key.Public(), begin, 9*365*24*time.Hour)
		must(tb, err)
		pem, err := identity.KeyPEM(key)
		must(tb, err)
		a.by[name], err = identity.Parse(cert, pem)
		must(tb, err)
	}
	return a
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (a *agents) id(name string) protocol.AgentID { return a.by[name].ID }

func (a *agents) config() resource.Config {
	return resource.Config{
		TrustJournal: true,
		Credential:   a.by["atlas"],
		Properties:   protocol.Properties{OS: "Linux", Arch: "x86_64", Cores: 100},
		Price:        pricing.Band{Start: 60 * protocol.Credit, Min: 40 * protocol.Credit},
		Terms:        []protocol.Terms{{Bank: a.id("bank"), Currency: "CRD"}},
	}
}

// store is a journal in memory.
type store map[string]map[string][]byte

func (s store) Get(table, key string) ([]byte, error) { return s[table][key], nil }

func (s store) Each(table string, f func(key string, value []byte) error) error {
	keys := make([]string, 0, len(s[table]))
	for k := range s[table] {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if err := f(k, s[table][k]); err != nil {
			return err
		}
	}
	return nil
}

func (s store) append(records []protocol.Record) {
	for _, r := range records {
		if s[r.Table] == nil {
			s[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(s[r.Table], r.Key)
		} else {
			s[r.Table][r.Key] = r.Value
		}
	}
}

// site is a resource agent with its batch system. Whatever else it sends is kept
// for the test.
type site struct {
	tb      testing.TB
	cfg     resource.Config
	role    *resource.Role
	store   store
	batch   *batch
	now     time.Time
	alarm   time.Time
	sent    []protocol.Message
	outputs int  // so far
	crashAt int  // number of the Output at which it crashes; 0: never
	keep    bool // the crash comes after the save, before the send
}

func newSite(tb testing.TB, cfg resource.Config) *site {
	s := &site{tb: tb, cfg: cfg, store: store{}, batch: &batch{cores: 100, slots: map[string]protocol.Slot{}, jobs: map[string]protocol.JobStatus{}}, now: noon}
	s.start()
	return s
}

// start makes the role from the store, as after a crash.
func (s *site) start() {
	role, out, err := resource.New(s.cfg, s.store, s.now)
	must(s.tb, err)
	s.role, s.alarm = role, time.Time{}
	s.carryOut(out)
}

// carryOut saves, then sends; a crash may come between.
func (s *site) carryOut(out protocol.Output) {
	s.outputs++
	crash := s.outputs == s.crashAt
	if !crash || s.keep {
		s.store.append(out.Save)
	}
	if crash {
		s.start()
		return
	}
	s.alarm = protocol.Earlier(s.alarm, out.WakeAt)
	for _, m := range out.Send {
		if m.Receivers[0] == protocol.LocalQueue {
			s.receive(s.batch.answer(s.now, m))
		} else {
			s.sent = append(s.sent, m)
		}
	}
}

func (s *site) receive(m protocol.Message) { s.carryOut(s.role.Receive(s.now, m)) }

// pass lets time pass, second by second, with alarms as they come.
func (s *site) pass(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Second)
		if !s.alarm.IsZero() && !s.now.Before(s.alarm) {
			s.alarm = time.Time{}
			out := s.role.Wake(s.now)
			if !out.WakeAt.After(s.now) {
				s.tb.Fatalf("woken at %s, the next alarm is at %s", s.now, out.WakeAt)
			}
			s.carryOut(out)
		}
	}
}

// take is what was sent to an agent since the last look, other than presences.
func (s *site) take(to protocol.AgentID) []protocol.Message {
	var list, rest []protocol.Message
	for _, m := range s.sent {
		switch m.Receivers[0] {
		case to:
			list = append(list, m)
		case protocol.Everyone:
		default:
			rest = append(rest, m)
		}
	}
	s.sent = rest
	return list
}

// buyer buys one unit and asks again for whatever it does not hear.
type buyer struct {
	*agents
	name         string
	site         *site
	conversation string
	attempt      int
	offer        protocol.Offer
	vote         message.Vote
	bundle       contract.Verified
	sold         bool
	mode         protocol.Mode // "": on reservation
	contract     string        // of a metered request; "": P up to 60 at one core
}

// pays is how the buyer pays.
func (b *buyer) pays() protocol.Mode {
	if b.mode == "" {
		return protocol.ModeOnReservation
	}
	return b.mode
}

func document(cores int, start, end time.Time) []byte {
	return fmt.Appendf(nil, `<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"><Request><CPUHourCost>60</CPUHourCost>`+
		`<EndDate>%s</EndDate><EndTime>%s</EndTime><StartDate>%s</StartDate><StartTime>%s</StartTime><WallTime>60</WallTime>`+
		`<Cores><TotalCores>%d</TotalCores></Cores></Request></RequestForQuotation>`,
		end.Format("2006-01-02"), end.Format("15:04:05"), start.Format("2006-01-02"), start.Format("15:04:05"), cores)
}

func (b *buyer) message(p protocol.Performative, token, tag string, body protocol.Body) protocol.Message {
	return protocol.Message{
		Performative: p, Sender: b.id(b.name), Receivers: []protocol.AgentID{b.id("atlas")},
		Protocol: token, Conversation: b.conversation, ReplyWith: tag, Body: body,
	}
}

// asked is the document that the buyer sends, with a contract if it is metered.
func (b *buyer) asked() []byte {
	if b.pays() != protocol.ModeMetered {
		return purchase
	}
	text := b.contract
	if text == "" {
		text = `<r:Contract xmlns:r="urn:ramp:rfql:2"><r:P rmin="0" rmax="1" Pmax="60"/></r:Contract>`
	}
	return bytes.Replace(purchase, []byte("</Cores>"), []byte("</Cores>"+text), 1)
}

// tariff is what such a contract comes to for an offer.
func (b *buyer) tariff(it protocol.Item) protocol.Tariff {
	doc, err := rfql.Parse(b.asked(), time.Time{})
	must(b.site.tb, err)
	return doc.Request(0).Tariff(it)
}

var purchase = document(10, noon.Add(time.Hour), noon.Add(3*time.Hour))

// again starts a new auction: the last one came to nothing.
func (b *buyer) again() {
	b.attempt++
	b.conversation = fmt.Sprintf("%s-%d", b.name, b.attempt)
	b.offer, b.vote, b.bundle = protocol.Offer{}, message.Vote{}, contract.Verified{}
}

// step sends what the buyer wants next, once more if need be.
func (b *buyer) step() {
	switch {
	case b.sold:
	case b.offer.ID == "":
		b.again()
		b.site.receive(b.message(protocol.CFP, protocol.ProtocolAuction, "r1", message.CallForProposals{
			Round: 1, Document: b.asked(), Terms: b.site.cfg.Terms, Modes: []protocol.Mode{b.pays()}}))
	case b.vote.Offer == "":
		b.site.receive(b.message(protocol.AcceptProposal, protocol.ProtocolCommit, "vote",
			message.Acceptance{Offer: b.offer, HoldUntil: b.site.now.Add(time.Minute)}))
	default:
		b.site.receive(b.message(protocol.Confirm, protocol.ProtocolCommit, "confirm", message.Confirmation{Bundle: b.signed()}))
	}
}

func (b *buyer) signed() contract.Verified {
	if b.bundle.Checked() {
		return b.bundle
	}
	it := b.offer.Items[0]
	body := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: b.conversation, User: b.id(b.name), Bank: b.id("bank"), Currency: "CRD",
		Mode: b.pays(), RFQ: hash(b.asked()), Total: it.Cost, Nonce: strings.Repeat("0", 32),
		SettleBy: b.site.now.Add(30 * time.Second),
		Units:    []protocol.BundleUnit{{Unit: 0, Seller: b.id("atlas"), Reservation: b.vote.Reservations[0].ID, Slot: it.Slot, Price: it.Price, Cost: it.Cost, Tariff: b.tariff(it)}},
	}
	der, err := contract.Sign(b.by[b.name], body, b.site.now)
	must(b.site.tb, err)
	b.bundle, err = contract.OpenBundle(der, b.trust, b.site.now)
	must(b.site.tb, err)
	return b.bundle
}

// hear takes what the seller answered.
func (b *buyer) hear() {
	for _, m := range b.site.take(b.id(b.name)) {
		if m.Conversation != b.conversation {
			continue
		}
		switch body := m.Body.(type) {
		case message.Proposal:
			b.offer = body.Offers[0]
		case message.Vote:
			b.vote = body
		case message.Refusal:
			b.offer.ID = "" // the next step begins anew
		case message.Decision:
			b.sold = body.Outcome == protocol.OutcomeSettled
			if !b.sold {
				b.offer.ID = ""
			}
		}
	}
}

// ledger is a bank that settles what one seller shows it, unless it is late.
type ledger struct {
	*agents
	decided map[protocol.ContractID]protocol.Receipt
}

func (l *ledger) work(s *site) {
	for _, m := range s.take(l.id("bank")) {
		var id protocol.ContractID
		switch body := m.Body.(type) {
		case message.Settlement:
			sale, err := contract.OpenSale(body.Sale.DER, l.trust, s.now)
			must(s.tb, err)
			id = sale.Verified.ID
			l.decide(s.now, sale)
		case message.OutcomeQuery:
			id = body.Contract
		default:
			s.tb.Fatalf("the bank gets %s", m.Body.Kind())
		}
		s.receive(m.Reply(l.id("bank"), protocol.Agree, l.decision(s, id)))
	}
}

func (l *ledger) decide(now time.Time, sale contract.Sale) {
	if _, ok := l.decided[sale.Verified.ID]; ok {
		return
	}
	r := protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: l.id("bank"), Contract: sale.Verified.ID, Outcome: protocol.OutcomeSettled,
		Entry: uint64(len(l.decided) + 1), Time: now, User: sale.Bundle.User, Total: sale.Bundle.Total, Currency: "CRD",
	}
	if sale.Bundle.Mode != protocol.ModeOnReservation {
		r.Mode = sale.Bundle.Mode
	}
	if !now.Before(sale.Bundle.SettleBy) {
		r.Outcome, r.Total, r.Reason = protocol.OutcomeVoid, 0, protocol.CodeSettleBy
	}
	l.decided[sale.Verified.ID] = r
}

func (l *ledger) decision(s *site, id protocol.ContractID) message.Decision {
	r, ok := l.decided[id]
	if !ok {
		return message.Decision{Contract: id, Outcome: protocol.OutcomeUnknown}
	}
	der, err := contract.SignReceipt(l.by["bank"], r, s.now)
	must(s.tb, err)
	v, err := contract.OpenReceipt(der, l.trust, s.now)
	must(s.tb, err)
	return message.Decision{Contract: id, Outcome: r.Outcome, Reason: r.Reason, Receipt: &v}
}
