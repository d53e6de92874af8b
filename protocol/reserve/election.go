package reserve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// What begins the reply-with of an accept-proposal; the offer's ID follows. One with a
// voucher has its own, so that a repeated answer to the one without is not taken for its.
const (
	votePrefix    = "vote-"
	vouchedPrefix = "vouched-"
)

// askedAbout is the offer that a vote was asked for with this reply-with, and whether with a voucher.
func askedAbout(tag string) (offer string, vouched, ok bool) {
	if offer, ok = strings.CutPrefix(tag, votePrefix); !ok {
		offer, ok = strings.CutPrefix(tag, vouchedPrefix)
		vouched = ok
	}
	return offer, vouched, ok
}

// maxElections bounds how often a refused vote leads to another set.
const maxElections = 1000

// maxSlates bounds the sets of one purchase that are voted on at the same time.
const maxSlates = 8

// election gathers the votes for a set of bids. While sellers of the set are slow, it also asks for
// the votes of another set without them. The first set with all votes is bought. A seller that
// refuses a vote, or does not vote in time, is not asked again: it may have a thousand offers.
type election struct {
	cfg      *CoordinatorConfig
	slates   []*slate // the preferred first
	excluded map[protocol.BidKey]bool
	out      map[protocol.AgentID]bool
	owed     map[protocol.BidKey]*ballot // in no set any more; an answer is still due
	silences []Silence                   // not collected yet
	vouching vouching
}

// slate is a set of bids that is voted on.
type slate struct {
	ballots []*ballot // in order of first unit; sets share ballots
	alone   bool      // there is no other set
}

// ballot is a bid whose seller was asked to hold it.
type ballot struct {
	bid      protocol.Bid
	vote     *message.Vote
	askedAt  time.Time
	deadline time.Time
	waits    bool // for a voucher
	vouched  bool // asked with one
}

// Silence is a vote, or a signature, that did not come. If Until is in the future, it can still come
// in time, although the purchase no longer waits for it.
type Silence struct {
	Seller   protocol.AgentID
	Until    time.Time
	Unsigned bool // it voted, but did not sign, although the network was there
}

func newElection(cfg *CoordinatorConfig) *election {
	return &election{cfg: cfg, slates: []*slate{{}}, excluded: map[protocol.BidKey]bool{}, out: map[protocol.AgentID]bool{}, owed: map[protocol.BidKey]*ballot{}}
}

// put adds a set to the vote, and asks for its bids that are in no other set.
func (e *election) put(now time.Time, bids []protocol.Bid) protocol.Output {
	var out protocol.Output
	s := &slate{}
	for _, bid := range bids {
		b := e.find(bid.Key())
		if b == nil {
			b = &ballot{bid: bid, askedAt: now, deadline: now.Add(protocol.VoteTimeout)}
			out.Send = append(out.Send, e.ask(now, b))
		}
		s.ballots = append(s.ballots, b)
	}
	e.slates = append(e.slates, s)
	return out
}

// retain goes on with some of the sets, and cancels the votes that are in none of them.
func (e *election) retain(slates ...*slate) protocol.Output {
	var out protocol.Output
	old := e.all()
	e.slates = slates
	for _, b := range old {
		switch {
		case e.find(b.bid.Key()) != nil:
			continue
		case b.vote != nil:
			out.Send = append(out.Send, e.cancel(b.bid.Seller, b.vote))
		case !e.out[b.bid.Seller] && !b.waits:
			e.owed[b.bid.Key()] = b
			e.silences = append(e.silences, Silence{Seller: b.bid.Seller, Until: b.deadline})
		}
		e.excluded[b.bid.Key()] = true
	}
	return out
}

// all returns the ballots of all sets.
func (e *election) all() []*ballot {
	var list []*ballot
	seen := map[*ballot]bool{}
	for _, s := range e.slates {
		for _, b := range s.ballots {
			if !seen[b] {
				seen[b] = true
				list = append(list, b)
			}
		}
	}
	return list
}

// find returns the ballot of a bid, or nil.
func (e *election) find(k protocol.BidKey) *ballot {
	for _, s := range e.slates {
		for _, b := range s.ballots {
			if b.bid.Key() == k {
				return b
			}
		}
	}
	return nil
}

func (e *election) ask(now time.Time, b *ballot) protocol.Message {
	a := message.Acceptance{Offer: b.bid.Offer, HoldUntil: now.Add(e.cfg.Hold), Voucher: e.vouching.voucher}
	if b.vouched = a.Voucher != nil; b.vouched {
		a.HoldUntil = protocol.Earlier(a.HoldUntil, a.Voucher.Note.Until)
	}
	m := e.cfg.message(b.bid.Seller, protocol.AcceptProposal, protocol.ProtocolCommit, a)
	if m.ReplyWith = votePrefix + b.bid.Offer.ID; b.vouched {
		m.ReplyWith = vouchedPrefix + b.bid.Offer.ID
	}
	m.ReplyBy = b.deadline
	return m
}

func (e *election) cancel(seller protocol.AgentID, v *message.Vote) protocol.Message {
	return e.cfg.message(seller, protocol.Cancel, protocol.ProtocolCommit, CancelVote(*v))
}

// CancelVote frees the reservations of a vote. Sellers ignore it for countersigned
// units, so it is a safe answer to any vote after the end of a purchase.
func CancelVote(v message.Vote) message.Cancellation {
	ids := make([]string, len(v.Reservations))
	for i, r := range v.Reservations {
		ids[i] = r.ID
	}
	return message.Cancellation{Reservations: ids}
}

// checkVote reports how a vote differs from its offer.
func checkVote(now time.Time, o protocol.Offer, v message.Vote) error {
	if v.Offer != o.ID {
		return fmt.Errorf("offer %q was asked for, not %q", o.ID, v.Offer)
	}
	if len(v.Reservations) != len(o.Items) {
		return fmt.Errorf("%d reservations for %d units", len(v.Reservations), len(o.Items))
	}
	if !v.HoldUntil.After(now.Add(2 * protocol.ClockSkew)) {
		return fmt.Errorf("held only until %s", v.HoldUntil.Format(time.RFC3339))
	}
	for _, it := range o.Items {
		i := slices.IndexFunc(v.Reservations, func(r message.Reservation) bool { return r.Unit == it.Unit })
		if i < 0 {
			return fmt.Errorf("no reservation for unit %d", it.Unit)
		}
		if r := v.Reservations[i]; r.ID == "" || !sameSlot(r.Slot, it.Slot) {
			return fmt.Errorf("reservation %q of unit %d is for another slot", r.ID, it.Unit)
		}
	}
	return nil
}

// lose takes out the seller of a lost vote. Sets that need another vote of it are over. If none is
// left, it votes on the best set without that seller: with the bids that are agreed or still open
// if possible, else with the agreed ones, else with any. It reports whether there is such a set.
func (e *election) lose(now time.Time, lost *ballot) (protocol.Output, bool) {
	e.out[lost.bid.Seller] = true
	var out protocol.Output
	left := slices.DeleteFunc(slices.Clone(e.slates), func(s *slate) bool { return slices.ContainsFunc(s.ballots, e.gone) })
	if len(left) == 0 {
		bids, ok := e.another(now)
		if !ok {
			return out, false
		}
		out = e.put(now, bids)
		left = e.slates[len(e.slates)-1:]
	}
	return out.Join(e.retain(left...)), true
}

// answered takes an answer to a vote that is in no set any more: a seller that refuses is out.
func (e *election) answered(k protocol.BidKey, refused bool) {
	if e.owed[k] != nil {
		delete(e.owed, k)
		e.out[k.Seller] = e.out[k.Seller] || refused
	}
}

func (e *election) gone(b *ballot) bool { return b.vote == nil && e.out[b.bid.Seller] }

func (e *election) another(now time.Time) ([]protocol.Bid, bool) {
	if len(e.excluded) > maxElections {
		return nil, false
	}
	first := e.slates[0]
	kept := bidsOf(first.ballots, func(b *ballot) bool { return !e.gone(b) })
	for _, fixed := range [][]protocol.Bid{kept, bidsOf(first.ballots, voted), nil} {
		if bids, ok := e.cfg.Chooser.Choose(now, fixed, e.without(now)); ok {
			return bids, true
		}
	}
	return nil, false
}

// without excludes the bids that were given up, and those of sellers that are out or slow.
func (e *election) without(now time.Time) func(protocol.Bid) bool {
	slow := map[protocol.AgentID]bool{}
	for _, b := range e.all() {
		if e.slow(now, b) {
			slow[b.bid.Seller] = true
		}
	}
	for k, b := range e.owed { // any order: each entry stands alone
		if e.slow(now, b) {
			slow[k.Seller] = true
		}
	}
	return func(b protocol.Bid) bool { return e.excluded[b.Key()] || e.out[b.Seller] || slow[b.Seller] }
}

// doubted reports whether a seller has kept silent in earlier purchases.
func (e *election) doubted(id protocol.AgentID) bool {
	return e.cfg.Doubted != nil && e.cfg.Doubted(id)
}

// patience returns when the runners-up of a ballot are asked too.
func (e *election) patience(b *ballot) time.Time {
	if b.waits {
		return b.deadline
	}
	if e.doubted(b.bid.Seller) {
		return b.askedAt
	}
	return b.askedAt.Add(protocol.VotePatience)
}

func (e *election) slow(now time.Time, b *ballot) bool {
	return b.vote == nil && !now.Before(e.patience(b))
}

// hurry asks the runners-up of slow sellers, those without failures if possible. The
// new set has all bids of the last one that are agreed or not slow, so that no
// seller is asked for two offers that exclude each other.
func (e *election) hurry(now time.Time) protocol.Output {
	var out protocol.Output
	for len(e.slates) < maxSlates && len(e.excluded) <= maxElections {
		last := e.slates[len(e.slates)-1]
		if at := e.hurryAt(); at.IsZero() || now.Before(at) {
			break
		}
		kept := bidsOf(last.ballots, func(b *ballot) bool { return !e.slow(now, b) })
		without := e.without(now)
		bids, ok := e.cfg.Chooser.Choose(now, kept, func(b protocol.Bid) bool { return without(b) || e.doubted(b.Seller) })
		if !ok {
			bids, ok = e.cfg.Chooser.Choose(now, kept, without)
		}
		if last.alone = !ok; ok {
			out = out.Join(e.put(now, bids))
		}
	}
	return out
}

// hurryAt returns when the runners-up of the last set are asked; zero: no runner-up.
func (e *election) hurryAt() (at time.Time) {
	last := e.slates[len(e.slates)-1]
	if last.alone || len(e.slates) >= maxSlates {
		return at
	}
	for _, b := range last.ballots {
		if b.vote == nil {
			at = protocol.Earlier(at, e.patience(b))
		}
	}
	return at
}

// late returns a ballot whose deadline has passed without a vote, or nil.
func (e *election) late(now time.Time) *ballot {
	for _, b := range e.all() {
		if b.vote == nil && !now.Before(b.deadline) {
			return b
		}
	}
	return nil
}

// count returns how many ballots of the preferred set have a vote, and how many there are.
func (e *election) count() (votes, asked int) {
	return len(bidsOf(e.slates[0].ballots, voted)), len(e.slates[0].ballots)
}

// elected returns the first set with all votes, or nil.
func (e *election) elected() *slate {
	for _, s := range e.slates {
		if !slices.ContainsFunc(s.ballots, func(b *ballot) bool { return b.vote == nil }) {
			return s
		}
	}
	return nil
}

func voted(b *ballot) bool { return b.vote != nil }

// bidsOf returns the bids of those ballots that are wanted.
func bidsOf(ballots []*ballot, wanted func(*ballot) bool) []protocol.Bid {
	var list []protocol.Bid
	for _, b := range ballots {
		if wanted(b) {
			list = append(list, b.bid)
		}
	}
	return list
}

// deadlines returns when the first open vote is due, or its runners-up are asked, and
// when the last one is due.
func (e *election) deadlines() (first, last time.Time) {
	first = e.hurryAt()
	for _, b := range e.all() {
		if b.vote == nil {
			first = protocol.Earlier(first, b.deadline)
			last = protocol.Later(last, b.deadline)
		}
	}
	return first, last
}

// bundle draws up the contract over all votes. It must be settled before the first
// hold ends, by the agreed skew, and before the first slot starts.
func (e *election) bundle(now time.Time) (protocol.Bundle, error) {
	nonce := sha256.Sum256([]byte("nonce\x00" + string(e.cfg.Self) + "\x00" + e.cfg.Conversation))
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: e.cfg.Conversation, User: e.cfg.Self,
		Bank: e.cfg.Terms.Bank, Currency: e.cfg.Terms.Currency, Mode: e.cfg.Mode, RFQ: e.cfg.RFQ,
		Nonce: hex.EncodeToString(nonce[:16]), SettleBy: now.Add(e.cfg.Settle),
	}
	for _, bal := range e.slates[0].ballots {
		b.SettleBy = protocol.Earlier(b.SettleBy, bal.vote.HoldUntil.Add(-protocol.ClockSkew))
		for _, it := range bal.bid.Offer.Items {
			b.SettleBy = protocol.Earlier(b.SettleBy, it.Slot.Start.Add(-time.Millisecond))
			b.Units = append(b.Units, protocol.BundleUnit{
				Unit: it.Unit, Seller: bal.bid.Seller, Reservation: reservationOf(bal.vote, it.Unit),
				Slot: it.Slot, Price: it.Price, Cost: it.Cost, Tariff: e.tariff(it),
			})
			var err error
			if b.Total, err = b.Total.Add(it.Cost); err != nil {
				return b, err
			}
		}
	}
	sort.Slice(b.Units, func(i, j int) bool { return b.Units[i].Unit < b.Units[j].Unit })
	if !b.SettleBy.After(now) {
		return b, fmt.Errorf("no time left to settle: a hold ends or a slot begins at %s", b.SettleBy.Format(time.RFC3339Nano))
	}
	return b, nil
}

// tariff returns the tariff of a unit if the bundle is metered.
func (e *election) tariff(it protocol.Item) protocol.Tariff {
	if e.cfg.Tariff == nil || e.cfg.Mode != protocol.ModeMetered {
		return protocol.Tariff{}
	}
	return e.cfg.Tariff(it)
}

func reservationOf(v *message.Vote, unit int) string {
	for _, r := range v.Reservations {
		if r.Unit == unit {
			return r.ID
		}
	}
	return ""
}
