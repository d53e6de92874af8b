package user

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"ramp/agents/index"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
	"ramp/rfql"
)

// Bounds of purchases.
const (
	maxPurchases = 1 << 12 // under way at once
	maxEnded     = 1 << 16 // ended ones whose IDs are remembered; beyond, the oldest ID can be used again
)

// purchases holds the purchases that are under way, and the IDs of those that have ended.
type purchases struct {
	cfg       *Config
	directory *directory
	guide     *index.Guide
	last      []message.Record // the last shortlist of an index
	lastSaved time.Time
	over      func(now time.Time, p *purchase) protocol.Output // takes each purchase that ends
	timing    *auction.Timing
	failures  *failures
	by        map[string]*purchase
	order     []string // keys of by, oldest first
	ended     map[string]bool
	endings   []string // keys of ended, oldest first
}

// buy starts a purchase, or reports the state of an earlier one with the same ID.
func (r *purchases) buy(now time.Time, order message.Buy) protocol.Output {
	if p := r.by[order.ID]; p != nil {
		return p.report("")
	}
	p := &purchase{row: Row{Purchase: Purchase{ID: order.ID, RFQ: order.Name, State: StateFailed}}, listOf: r.directory.listOf}
	if r.ended[order.ID] { // its record stands; it is not bought a second time
		p.row.Why = "a purchase with this ID has already ended"
		return p.report("done")
	}
	p.row.Created, p.row.Units, p.row.Rounds = now, []Unit{}, []message.Round{}
	if q := order.Replaces; q != nil {
		p.row.Replaces = q.Of
	}
	if len(r.by) >= maxPurchases {
		return r.finish(now, p, StateFailed, fmt.Sprintf("%d purchases are under way, and no more are allowed", maxPurchases))
	}
	if out, ok := r.lookup(now, p, &order); ok {
		r.add(p)
		return r.advance(now, p, out)
	}
	list, short := r.sellers(now)
	return r.open(now, p, order, list, short)
}

// open begins the auction of an order among sellers; short: they are a shortlist.
func (r *purchases) open(now time.Time, p *purchase, order message.Buy, sellers []Known, short bool) protocol.Output {
	cfg, err := r.buyerConfig(now, p, &order, sellers)
	if err == nil && short {
		shorten(&cfg, sellers)
	}
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		p.row.Found = len(sellers) // the market is not to blame
		return r.finish(now, p, StateFailed, err.Error())
	}
	p.begin(order, cfg)
	r.add(p)
	p.unsaved = !order.Options.QuoteOnly
	var called protocol.Output
	p.buyer, called = auction.NewBuyer(now, cfg, r.timing)
	out := p.report("found").Join(protocol.Output{WakeAt: now})
	return out.Join(r.advance(now, p, called))
}

func (r *purchases) add(p *purchase) {
	if r.by[p.row.ID] == p {
		return
	}
	r.by[p.row.ID] = p
	r.order = append(r.order, p.row.ID)
}

func (r *purchases) used(id string) bool { return r.by[id] != nil || r.ended[id] }

func (r *purchases) end(id string) {
	if r.ended[id] {
		return
	}
	if len(r.endings) >= maxEnded {
		delete(r.ended, r.endings[0])
		r.endings = r.endings[1:]
	}
	r.ended[id] = true
	r.endings = append(r.endings, id)
}

// of is the purchase that a message is about; nil if none is. A bank that voids a
// contract by itself names the contract but not its conversation.
func (r *purchases) of(m protocol.Message) *purchase {
	if p := r.by[m.Conversation]; p != nil {
		return p
	}
	if m.Protocol == protocol.ProtocolIndex {
		for _, id := range r.order {
			if p := r.by[id]; p.search != nil && p.search.Conversation() == m.Conversation {
				return p
			}
		}
	}
	d, ok := m.Body.(message.Decision)
	if !ok || d.Contract == "" {
		return nil
	}
	for _, id := range r.order {
		if p := r.by[id]; p.coord != nil && p.coord.Bundle().ID == d.Contract {
			return p
		}
	}
	return nil
}

// wake does what is due in every purchase.
func (r *purchases) wake(now time.Time) protocol.Output {
	out := r.saveBegun().Join(r.failures.wake(now))
	for _, id := range slices.Clone(r.order) {
		if p := r.by[id]; p != nil {
			out = out.Join(r.advance(now, p, p.wake(now)))
		}
	}
	return out
}

// saveBegun saves purchases that have begun. That record only shows the owner after
// a crash that they existed, so the first call for proposals does not wait for the
// disk: the record is saved one step later.
func (r *purchases) saveBegun() protocol.Output {
	var out protocol.Output
	for _, id := range r.order {
		if p := r.by[id]; p.unsaved {
			p.unsaved = false
			out.Save = append(out.Save, p.row.save())
		}
	}
	return out
}

// buyerConfig makes an order an auction. It fills in ceilings that the order leaves out.
func (r *purchases) buyerConfig(now time.Time, p *purchase, order *message.Buy, sellers []Known) (auction.BuyerConfig, error) {
	o := order.Options
	doc, err := rfql.Parse(order.Document, now)
	if err != nil {
		return auction.BuyerConfig{}, err
	}
	if order.Only != "" {
		sellers = slices.DeleteFunc(sellers, func(k Known) bool { return k.ID != order.Only })
	}
	if len(sellers) == 0 && !doc.Priced() {
		return auction.BuyerConfig{}, errNobody
	}
	if len(o.Terms) == 0 {
		o.Terms = r.cfg.Terms
	}
	terms, err := r.directory.terms(now, o.Terms, sellers)
	if err != nil {
		return auction.BuyerConfig{}, err
	}
	list := listPrices(doc.Requests(), terms, sellers)
	if doc, err = fill(order, doc, terms, list); err != nil {
		return auction.BuyerConfig{}, err
	}
	mode, err := r.directory.mode(now, cmp.Or(o.Mode, r.cfg.Mode), terms, doc.Requests(), sellers)
	if err != nil {
		return auction.BuyerConfig{}, err
	}
	p.row.Notes = farAboveNotes(doc.Requests(), list)
	cfg := auction.BuyerConfig{
		Self: r.cfg.self(), Conversation: order.ID, Document: order.Document, Wants: wantsOf(doc, now, o.MaxWait),
		Rounds: o.Rounds, RoundLimit: cmp.Or(o.RoundLimit, protocol.DefaultRoundLimit), NoEarlyClose: o.NoEarlyClose,
		Objective: cmp.Or(o.Objective, protocol.ObjectiveCostTime), SameStart: doc.SameStart(), MaxCost: o.MaxCost, CallAtMost: r.cfg.CallAtMost, Budget: r.cfg.Budget,
		Terms: []protocol.Terms{terms}, Modes: []protocol.Mode{mode},
		Launch: order.Launch(), Sellers: make([]protocol.AgentID, len(sellers)), Last: r.failures.atLeast(now, askedLast),
	}
	for i := range sellers {
		cfg.Sellers[i] = sellers[i].ID
	}
	if cfg.Budget > 0 {
		cfg.Prospects = prospectsOf(doc.Requests(), terms, sellers)
	}
	return cfg, nil
}

// advance carries a purchase on after its machine has answered with out.
func (r *purchases) advance(now time.Time, p *purchase, out protocol.Output) protocol.Output {
	switch {
	case p.coord != nil:
		return out.Join(r.failures.note(now, p.row.ID, p.coord.TakeSilences())).Join(r.afterCommit(now, p))
	case p.row.State == StateApproval:
		return out.Join(r.awaitApproval(now, p))
	case p.buyer != nil && p.buyer.Over():
		return out.Join(r.afterAuction(now, p))
	case p.stopped:
		return out.Join(r.finish(now, p, StateCancelled, "cancelled before anything was bought"))
	case p.search != nil && p.search.Done():
		return out.Join(r.found(now, p))
	case p.buyer != nil && len(p.buyer.Rounds()) != len(p.row.Rounds):
		p.row.Rounds = p.buyer.Rounds()
		return out.Join(p.report("round"))
	}
	return out
}

// afterAuction quotes, asks the owner, votes, or fails.
func (r *purchases) afterAuction(now time.Time, p *purchase) protocol.Output {
	p.row.Rounds = p.buyer.Rounds()
	p.row.AuctionMS = auction.Milliseconds(now.Sub(p.row.Created))
	found := p.buyer.Explain()
	p.row.Reasons, p.row.Programs = map[string]int{}, found.Programs()
	for code, n := range found.Why() {
		p.row.Reasons[string(code)] = n
	}
	if p.buyer.State() == auction.Failed {
		p.advise()
		return r.finish(now, p, StateFailed, p.whyFailed(found))
	}
	res := p.buyer.Result()
	p.showOffers(res.Bids)
	p.row.Exact = res.Exact
	if res.Best {
		p.advise()
		p.row.Violations = p.buyer.Violations(res.Bids)
	}
	switch {
	case p.row.Order.Options.QuoteOnly:
		return r.finish(now, p, StateQuoted, "")
	case res.Best && (p.row.Order.Replaces != nil || p.row.Order.Only != ""): // its owner is not waiting to approve it
		return r.finish(now, p, StateFailed, WhyUnmet)
	case res.Best || p.row.Order.Options.Approve || p.row.Order.Options.Confirm:
		p.row.State = StateApproval
		p.answerBy = now.Add(ApprovalTime)
		return p.report("approval").Join(protocol.Output{Save: []protocol.Record{p.row.save()}, WakeAt: p.answerBy})
	}
	return r.vote(now, p, res.Bids)
}

// whyFailed describes an auction without a set of offers for every unit.
func (p *purchase) whyFailed(found auction.Explanation) string {
	refused := 0
	for _, n := range p.row.Reasons {
		refused += n
	}
	switch {
	case p.row.Found == 0:
		return "no site is known: 'ramp doctor' finds the cause"
	case p.row.Reasons[string(protocol.CodeSilent)] >= p.row.Found:
		return "no site answers: 'ramp doctor' finds the cause"
	case refused >= p.row.Found:
		return cmp.Or(found.Lack(), "no site can run this")
	}
	if p.buyer.Apart() {
		return "no start at which all units can begin together"
	}
	return "the offers do not cover every unit"
}

func (r *purchases) awaitApproval(now time.Time, p *purchase) protocol.Output {
	switch {
	case p.stopped:
		return r.finish(now, p, StateCancelled, "cancelled before anything was bought")
	case !p.refused && now.Before(p.answerBy):
		return protocol.Output{WakeAt: p.answerBy}
	case len(p.row.Violations) > 0:
		return r.finish(now, p, StateFailed, WhyUnmet)
	}
	return r.finish(now, p, StateFailed, "not approved")
}

func (r *purchases) approval(now time.Time, a message.Approval) protocol.Output {
	p := r.by[a.ID]
	if p == nil || p.row.State != StateApproval {
		return protocol.Output{}
	}
	if !a.Yes {
		p.refused = true
		return r.advance(now, p, protocol.Output{})
	}
	p.buyer.Approve()
	return r.vote(now, p, p.buyer.Result().Bids)
}

func (r *purchases) vote(now time.Time, p *purchase, chosen []protocol.Bid) protocol.Output {
	p.row.State = StateVoting
	out := p.report("voting")
	if p.unsaved { // a signed bundle must find its purchase after a crash
		p.unsaved = false
		out.Save = append(out.Save, p.row.save())
	}
	var asked protocol.Output
	p.coord, asked = reserve.NewCoordinator(now, r.coordinatorConfig(now, p), chosen)
	return out.Join(r.advance(now, p, asked))
}

func (r *purchases) coordinatorConfig(now time.Time, p *purchase) reserve.CoordinatorConfig {
	sum := sha256.Sum256(p.row.Order.Document)
	cfg := reserve.CoordinatorConfig{
		Self: r.cfg.self(), Conversation: p.row.ID, Terms: p.row.Terms, Mode: p.row.Mode,
		RFQ: hex.EncodeToString(sum[:]), Hold: r.cfg.Hold, Settle: r.cfg.Settle, Sign: r.cfg.sign,
	}
	if p.buyer != nil {
		cfg.Chooser, cfg.Doubted = p.buyer, r.failures.atLeast(now, 1)
		if p.row.Mode == protocol.ModeMetered {
			cfg.Tariff = p.tariffs()
		}
	}
	return cfg
}

// stop gives up a purchase: bidding ends, and votes are cancelled. Once the bundle
// is signed, it asks the bank to void it, and the bank decides.
func (r *purchases) stop(now time.Time, p *purchase) protocol.Output {
	p.stopped = true
	if p.coord == nil {
		return r.advance(now, p, protocol.Output{})
	}
	return r.advance(now, p, p.coord.Abandon(now).Join(p.coord.Annul()))
}

// restore resumes a purchase whose bundle was signed, and ends any other.
func (r *purchases) restore(now time.Time, row *Row, saved reserve.Saved, signed bool) (protocol.Output, error) {
	p := &purchase{row: *row, listOf: r.directory.listOf}
	if !signed {
		return r.finish(now, p, StateInterrupted, "the agent stopped before anything was signed; nothing was bought"), nil
	}
	opened, err := r.reopen(saved)
	if err != nil {
		return protocol.Output{}, fmt.Errorf("purchase %s: %w", p.row.ID, err)
	}
	var out protocol.Output
	p.coord, out = reserve.Resume(now, r.coordinatorConfig(now, p), saved, opened)
	r.add(p)
	return r.advance(now, p, out), nil
}

// reopen verifies saved signatures as of when they were made: a certificate may have expired since.
func (r *purchases) reopen(s reserve.Saved) (o reserve.Reopened, err error) {
	trust := r.cfg.Trust
	if o.Bundle, err = contract.OpenBundle(s.Bundle, trust, s.SignedAt); err != nil {
		return o, err
	}
	for _, der := range s.Sales {
		sale, err := contract.OpenSale(der, trust, s.SignedAt)
		if err != nil {
			return o, err
		}
		o.Sales = append(o.Sales, sale)
	}
	if len(s.Receipt) > 0 {
		receipt, err := contract.OpenReceipt(s.Receipt, trust, s.SignedAt)
		if err != nil {
			return o, err
		}
		o.Receipt = &receipt
	}
	return o, nil
}

func (r *purchases) sizes() []protocol.Size {
	list := append(r.timing.Sizes(),
		r.guide.Size(),
		protocol.Size{Of: "purchases", N: len(r.by), Most: maxPurchases},
		protocol.Size{Of: "purchases in order", N: len(r.order), Most: maxPurchases},
		protocol.Size{Of: "sellers that kept silent", N: len(r.failures.by), Most: maxFailing},
		protocol.Size{Of: "votes that are owed", N: len(r.failures.owed), Most: maxOwed},
		protocol.Size{Of: "purchases that are over", N: len(r.ended), Most: maxEnded},
		protocol.Size{Of: "purchases that are over, in order", N: len(r.endings), Most: maxEnded},
	)
	for _, id := range r.order {
		if p := r.by[id]; p.coord != nil {
			list = append(list, p.coord.Sizes()...)
		} else if p.buyer != nil {
			list = append(list, p.buyer.Sizes()...)
		}
	}
	return list
}
