package reserve

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"ramp/protocol"
)

// MaxClaims bounds the units that a Participant remembers, sold ones included. MaxBuyers bounds the
// buyers whose holds it remembers. Beyond either it refuses further offers with limit.
const (
	MaxClaims    = 1 << 16
	MaxBuyers    = 1 << 15
	maxStrangers = MaxClaims // reservations that a lost journal must have made
	maxFreed     = 1 << 16   // freed reservations that are recognised if they reappear
)

// maxCoreSeconds bounds BuyerCoreSeconds, so that sums fit into 63 bits.
const maxCoreSeconds = 1 << 60

// Bytes that a unit, and the rest of a deal, take in the journal at most. A contract takes
// up to contractFactor times its length: it is stored decoded, signed, and countersigned.
const (
	claimBytes     = 1 << 10
	dealBytes      = 1 << 10
	contractFactor = 4
)

// footprint is how much of the seller's memory and journal something takes that is not sold.
type footprint struct{ claims, bytes int }

func contractBytes(der []byte) int { return dealBytes + contractFactor*len(der) }

// footprint is that of a deal: its units that were never sold, and its contract in doubt.
func (d *deal) footprint() (w footprint) {
	for _, c := range d.claims {
		if c.unsold() || c.state == ClaimFreed {
			w.claims++
		}
	}
	if w.claims > 0 {
		w.bytes = dealBytes + claimBytes*w.claims
	}
	if d.inDoubt() {
		w.bytes += contractBytes(d.contract.sale.Verified.DER)
	} else if d.prepared != nil {
		w.bytes += contractBytes(d.prepared.Verified.DER)
	}
	return w
}

// quota counts how much of the machine, and of the seller's memory, buyers block without buying it.
type quota struct {
	cfg    *ParticipantConfig
	unsold int // claims reserving, held or countersigned
	kept   footprint
	buyers map[protocol.AgentID]*blocked
}

// blocked is what one buyer blocks, or has lately blocked, without buying. A slot weighs
// its core-seconds times the share of DefaultHold for which it was held. So nobody can
// occupy a machine for free by repeatedly holding and letting go, and a buyer whose
// purchase fails within seconds owes next to nothing.
type blocked struct {
	kept    footprint
	holds   int   // unsold claims
	queued  int   // unsold claims that the batch system has not granted yet
	pending int64 // weight of the unsold claims if none is bought
	debt    int64 // weight of the claims that were held but not bought, as of at
	at      time.Time
}

// maxDebt is how many times its allowance a buyer can owe: more would be held against it
// for longer than it teaches anything.
const maxDebt = 8

// debtDay is how long it takes to forget a debt as large as the allowance.
const debtDay = 24 * time.Hour

// admit reports whether a buyer may have another offer held until a time, given how many
// claims the seller remembers. Beyond the buyer's allowance it needs a voucher of its bank.
func (q *quota) admit(now, until time.Time, buyer protocol.AgentID, o protocol.Offer, vouched bool, claims int) (protocol.Reason, bool) {
	no := func(c protocol.Code, format string, args ...any) (protocol.Reason, bool) {
		return protocol.Reason{Code: c, Unit: protocol.AllUnits, Note: fmt.Sprintf(format, args...)}, false
	}
	if q.unsold+len(o.Items) > MaxUnsold || claims+len(o.Items) > MaxClaims {
		return no(protocol.CodeLimit, "the site already holds %d units and remembers %d", q.unsold, claims)
	}
	b := blocked{at: now}
	if known := q.buyers[buyer]; known != nil {
		b = *known
	} else if len(q.buyers) >= MaxBuyers {
		return no(protocol.CodeLimit, "the site already serves %d other buyers", len(q.buyers))
	}
	if b.holds+len(o.Items) > q.cfg.BuyerHolds {
		return no(protocol.CodeHoldLimit, "%d units held and not bought, at most %d", b.holds, q.cfg.BuyerHolds)
	}
	if b.queued+len(o.Items) > q.cfg.BuyerReserves {
		return no(protocol.CodeHoldLimit, "%d reservations wait for the batch system, at most %d of one buyer", b.queued, q.cfg.BuyerReserves)
	}
	size := footprint{len(o.Items), dealBytes + claimBytes*len(o.Items)}
	if b.kept.claims+size.claims > protocol.MaxBuyerClaims || b.kept.bytes+size.bytes > protocol.MaxBuyerKept {
		return no(protocol.CodeHoldLimit, "%d units not bought are remembered for a while, in %d bytes; at most %d, in %d",
			b.kept.claims, b.kept.bytes, protocol.MaxBuyerClaims, protocol.MaxBuyerKept)
	}
	if q.kept.bytes+size.bytes > protocol.MaxKept {
		return no(protocol.CodeLimit, "the site remembers %d bytes of units that are not bought, at most %d", q.kept.bytes, protocol.MaxKept)
	}
	debt, more := b.owes(now, q.cfg.BuyerCoreSeconds), b.pending
	for _, it := range o.Items {
		more = saturate(more, pending(it.Slot, until.Sub(now)))
	}
	if saturate(debt, more) > q.cfg.BuyerCoreSeconds && !vouched {
		return no(protocol.CodeVoucher, "%s held and not bought, %s with this offer; beyond %s a voucher of the buyer's bank is needed",
			coreHours(debt), coreHours(saturate(debt, more)), coreHours(q.cfg.BuyerCoreSeconds))
	}
	return protocol.Reason{}, true
}

func coreHours(weight int64) string { return fmt.Sprintf("%.1f core-hours", float64(weight)/3600) }

// weight is a slot's core-seconds, times the share of DefaultHold for which it is held,
// rounded up to a second; at most maxCoreSeconds.
func weight(s protocol.Slot, held time.Duration) int64 {
	seconds := uint64((max(held, 0) + time.Second - 1) / time.Second)
	hi, lo := bits.Mul64(uint64(coreSeconds(s)), seconds)
	if hi >= uint64(protocol.DefaultHold/time.Second) {
		return maxCoreSeconds
	}
	n, _ := bits.Div64(hi, lo, uint64(protocol.DefaultHold/time.Second))
	return int64(min(n, maxCoreSeconds))
}

// room reports whether a buyer's contract may be kept until its bank decides.
func (q *quota) room(d *deal, der []byte) bool {
	size := contractBytes(der)
	return q.kept.bytes+size <= protocol.MaxKept && q.buyer(d.user).kept.bytes+size <= protocol.MaxBuyerKept
}

// weigh counts a deal as it is now.
func (q *quota) weigh(d *deal) {
	b, w := q.buyer(d.user), d.footprint()
	for _, sum := range []*footprint{&q.kept, &b.kept} {
		sum.claims += w.claims - d.kept.claims
		sum.bytes += w.bytes - d.kept.bytes
	}
	d.kept = w
}

// saturate adds two weights, up to maxCoreSeconds.
func saturate(a, b int64) int64 { return min(a+b, maxCoreSeconds) }

// owes is what is left of the debt: the allowance per debtDay is forgiven.
func (b *blocked) owes(now time.Time, allowance int64) int64 {
	elapsed := min(max(now.Sub(b.at), 0), maxDebt*debtDay)
	hi, lo := bits.Mul64(uint64(allowance), uint64(elapsed))
	forgiven, _ := bits.Div64(hi, lo, uint64(debtDay))
	return max(0, b.debt-int64(min(forgiven, maxCoreSeconds)))
}

// add counts a new claim of its buyer.
func (q *quota) add(c *claim) {
	q.unsold++
	b := q.of(c)
	b.holds++
	b.pending += c.weight()
	if c.state == ClaimReserving {
		b.queued++
	}
}

func (c *claim) weight() int64 { return pending(c.item.Slot, c.holdUntil.Sub(c.since)) }

// pending is the weight of a slot that is held to its end, or for DefaultHold if that is
// longer: short holds do not block more of the machine at once.
func pending(s protocol.Slot, hold time.Duration) int64 {
	return weight(s, max(hold, protocol.DefaultHold))
}

// of returns the count of a claim's buyer.
func (q *quota) of(c *claim) *blocked { return q.buyer(c.deal.user) }

func (q *quota) buyer(id protocol.AgentID) *blocked {
	b := q.buyers[id]
	if b == nil {
		b = &blocked{}
		q.buyers[id] = b
	}
	return b
}

// answered notes that the batch system has answered for a claim, or never will.
func (q *quota) answered(c *claim) {
	if c.state == ClaimReserving {
		q.buyers[c.deal.user].queued--
	}
}

// remove ends the count of a claim that is not blocked for its buyer any more.
func (q *quota) remove(c *claim) {
	q.unsold--
	b := q.of(c)
	b.holds--
	b.pending -= c.weight()
}

// charge adds what its buyer has held and not bought to its debt. The bank's time to decide
// does not count, and callers leave out what the batch system did not grant.
func (q *quota) charge(t *turn, c *claim) {
	q.owe(t, c, protocol.Earlier(t.now, c.holdUntil).Sub(c.since))
}

// returned charges a buyer for a unit that it has cancelled, as if it had held it since the
// vote. The time that its purchase had made up for counts again.
func (q *quota) returned(t *turn, c *claim) { q.owe(t, c, t.now.Sub(c.since)+protocol.DefaultHold) }

func (q *quota) owe(t *turn, c *claim, held time.Duration) {
	most := maxDebt * min(q.cfg.BuyerCoreSeconds, maxCoreSeconds/maxDebt)
	q.set(t, c.deal.user, min(saturate(q.of(c).owes(t.now, q.cfg.BuyerCoreSeconds), weight(c.item.Slot, held)), most))
}

// set changes a buyer's debt.
func (q *quota) set(t *turn, buyer protocol.AgentID, debt int64) {
	q.buyers[buyer].debt, q.buyers[buyer].at = debt, t.now
	if !slices.Contains(t.debtors, buyer) {
		t.debtors = append(t.debtors, buyer)
	}
}

// flush saves the debts that the turn changed.
func (q *quota) flush(t *turn) {
	for _, id := range t.debtors {
		r := protocol.Record{Table: TableUnbought, Key: string(id)}
		if b := q.buyers[id]; b != nil && b.debt > 0 {
			r.Value = encode(savedDebt{b.debt, b.at})
		}
		t.save(r)
	}
}

// bought ends the count of a claim that was bought, and forgives the debt of holding as much once.
func (q *quota) bought(t *turn, c *claim) {
	q.remove(c)
	if b := q.of(c); b.debt > 0 {
		q.set(t, c.deal.user, max(0, b.owes(t.now, q.cfg.BuyerCoreSeconds)-weight(c.item.Slot, protocol.DefaultHold)))
	}
}

// TableUnbought has what buyers have held and not bought, so that a restart does not forgive it.
const TableUnbought = "seller-unbought"

// savedDebt is the journal's form of a debt.
type savedDebt struct {
	CoreSeconds int64     `json:"core_seconds"`
	At          time.Time `json:"at"`
}

func (q *quota) read(buyer string, s savedDebt) error {
	b := q.buyer(protocol.AgentID(buyer))
	b.debt, b.at = min(max(s.CoreSeconds, 0), maxCoreSeconds), s.At
	return nil
}

// forget drops buyers that block nothing and owe nothing.
func (q *quota) forget(t *turn) {
	for _, id := range slices.Sorted(maps.Keys(q.buyers)) {
		b := q.buyers[id]
		if b.holds > 0 || b.kept != (footprint{}) || b.owes(t.now, q.cfg.BuyerCoreSeconds) > 0 {
			continue
		}
		if b.debt > 0 {
			q.set(t, id, 0)
		}
		delete(q.buyers, id)
	}
}

// Unbought is what a buyer has lately held and not bought.
type Unbought struct {
	Buyer       protocol.AgentID
	CoreSeconds int64 // of slots, each held for DefaultHold
}

// Unbought lists the buyers that owe the most, at most n, with the allowance of each.
func (p *Participant) Unbought(now time.Time, n int) (list []Unbought, allowance int64) {
	for id, b := range p.quota.buyers { // any order: sorted below
		if debt := b.owes(now, p.cfg.BuyerCoreSeconds); debt > 0 {
			list = append(list, Unbought{id, debt})
		}
	}
	slices.SortFunc(list, func(a, b Unbought) int {
		return cmp.Or(cmp.Compare(b.CoreSeconds, a.CoreSeconds), cmp.Compare(a.Buyer, b.Buyer))
	})
	return list[:min(n, len(list))], p.cfg.BuyerCoreSeconds
}

// sizes returns the counts with their bounds.
func (q *quota) sizes() []protocol.Size {
	holds, queued, kept := 0, 0, footprint{}
	for _, b := range q.buyers {
		holds, queued = max(holds, b.holds), max(queued, b.queued)
		kept.claims, kept.bytes = max(kept.claims, b.kept.claims), max(kept.bytes, b.kept.bytes)
	}
	return []protocol.Size{
		{Of: "units not sold", N: q.unsold, Most: MaxUnsold},
		{Of: "buyers", N: len(q.buyers), Most: MaxBuyers},
		{Of: "units of one buyer not sold", N: holds, Most: q.cfg.BuyerHolds},
		{Of: "units of one buyer remembered and not sold", N: kept.claims, Most: protocol.MaxBuyerClaims},
		{Of: "bytes kept of one buyer's unsold units", N: kept.bytes, Most: protocol.MaxBuyerKept},
		{Of: "bytes kept of unsold units", N: q.kept.bytes, Most: protocol.MaxKept},
		{Of: "reservations asked for by one buyer", N: queued, Most: q.cfg.BuyerReserves},
	}
}
