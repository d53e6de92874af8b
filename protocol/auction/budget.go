package auction

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// The response budget limits answers in a market that is too large to ask every
// seller. In each round the buyer calls the sellers whose price bands promise the
// lowest prices, and a few at random (docs/decisions/0019). If units remain without
// an offer, it calls everybody by gossip, and sellers answer that at random.

// A shortlist from an index takes the place of all that: the buyer calls some of it in
// each round, and replaces sellers that have nothing to offer by the next on the list.

// DefaultBudget is about how many sellers a buyer asks in a round of a large
// market, and ShortBudget how many of a shortlist.
const (
	DefaultBudget = 64
	ShortBudget   = 32
)

// nominalRounds is how many rounds a seller is assumed to take from its start price
// to its lowest, before it has answered.
const nominalRounds = 4

// Prospect is the buyer's knowledge of a seller before the first call. It only
// decides whether the buyer calls the seller.
type Prospect struct {
	Start, Min protocol.Credits // its price band per core-hour
	Load       int              // eighths of its machine that are allocated, 0..7
	Units      UnitSet          // units whose static terms it meets
}

// drop is what a seller is expected to take off its price in a round.
func (p *Prospect) drop() protocol.Credits {
	return max(0, p.Start-p.Min) / nominalRounds * protocol.Credits(eighths-p.Load) / eighths
}

const eighths = 8

// UnitSet is a set of units of a document.
type UnitSet [protocol.MaxUnits / 64]uint64

// Add puts unit, 0..protocol.MaxUnits-1, into the set.
func (s *UnitSet) Add(unit int) { s[unit/64] |= 1 << (unit % 64) }

// Has reports whether unit is in the set.
func (s *UnitSet) Has(unit int) bool { return s[unit/64]&(1<<(unit%64)) != 0 }

// Chosen reports whether a seller answers a gossiped call with a budget. The answer
// is fixed for a call, and positive for about budget of among sellers. Nobody can
// predict it before the conversation has a name.
func Chosen(conversation string, round int, seller protocol.AgentID, budget, among int) bool {
	if budget <= 0 || budget >= among {
		return true
	}
	whole, _ := bits.Mul64(lot(conversation, round, seller), uint64(among))
	return whole < uint64(budget)
}

// lot returns a pseudo-random number that depends only on the arguments.
func lot(conversation string, round int, seller protocol.AgentID) uint64 {
	b := make([]byte, 0, 256)
	b = append(b, conversation...)
	b = append(b, 0)
	b = strconv.AppendInt(b, int64(round), 10)
	b = append(b, 0)
	b = append(b, seller...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// scout chooses the sellers that a buyer with a budget calls. It refers to sellers
// by their index in the buyer's configuration.
type scout struct {
	cfg      *BuyerConfig
	sellers  *bidders
	standing *standing
	lots     []uint64
	asked    []*bidder // nil: not called in this auction yet
	among    int       // of the last call by gossip; 0: there was no such call
	swept    bool      // everybody was asked by gossip
	taken    int       // proposals that counted in a gossiped round
	leaders  []protocol.AgentID
	asks     int // rounds so far
}

func newScout(cfg *BuyerConfig, sellers *bidders, st *standing) *scout {
	s := &scout{cfg: cfg, sellers: sellers, standing: st, lots: make([]uint64, len(cfg.Sellers)), asked: make([]*bidder, len(cfg.Sellers))}
	for i, id := range cfg.Sellers {
		s.lots[i] = lot(cfg.Conversation, 0, id)
	}
	return s
}

// callees returns the receivers of a round's cfp: nobody, if no known seller could
// beat the offers that stand.
func (s *scout) callees(round int, best bool) []protocol.AgentID {
	defer func() { s.asks++ }()
	v := view{best: best, left: max(cmp.Or(s.cfg.Rounds, protocol.DefaultRounds)-round, 0) + 1}
	lacking := s.standing.lacking()
	s.leaders = s.standing.leaders()
	if round > 1 && !best && len(lacking) > 0 && !s.swept && !s.cfg.Shortlist {
		return []protocol.AgentID{protocol.Everyone}
	}
	units := lacking
	if !best || len(lacking) == 0 {
		units = make([]int, len(s.cfg.Wants))
		for u := range units {
			units[u] = u
		}
	}
	chosen := s.promising(units, v)
	switch {
	case len(chosen) > 0 || round > 1 && !best:
	case !s.cfg.Shortlist: // reach sellers that the buyer does not know
		return []protocol.AgentID{protocol.Everyone}
	case round == 1: // they can say why they refuse
		for i := range s.cfg.Sellers[:min(s.cfg.Budget, len(s.cfg.Sellers))] {
			chosen = append(chosen, i)
		}
	}
	return s.enlist(chosen)
}

// enlist makes bidders of the chosen sellers.
func (s *scout) enlist(chosen []int) []protocol.AgentID {
	slices.Sort(chosen)
	ids := make([]protocol.AgentID, len(chosen))
	for n, i := range chosen {
		ids[n] = s.cfg.Sellers[i]
		s.asked[i] = s.sellers.add(ids[n])
		s.asked[i].called, s.asked[i].list = true, s.cfg.Prospects[i].Start
	}
	return ids
}

// view is the round that asks are expected for.
type view struct {
	best  bool               // it is the best-offer round
	left  int                // usual rounds from this one on
	opens []protocol.Credits // each unit's lowest ask before it; nil: that which stands
}

// promising returns the sellers to call: for each unit those with the lowest
// expected prices, and some by lot, who may be better than their price bands.
//
// Before the last round, a shortlist spares the sellers that go lowest in the end, since they
// would hear one more call of every buyer. The few that ask least now decide where the next
// round begins. If nobody knows which round is the last, only the first one spares them.
func (s *scout) promising(units []int, v view) []int {
	chosen := map[int]bool{}
	byPrice := s.cfg.Shortlist && s.cfg.Objective != protocol.ObjectiveTime && !v.best
	spares := byPrice && v.left > 1 && (s.asks == 0 || s.cfg.Rounds > 0)
	var now []shortlist
	if spares || byPrice && s.asks == 0 {
		now = s.openers(units, v)
		s.addFirst(chosen, now, s.cfg.Budget/2)
	}
	roomy := s.roomy()
	switch {
	case spares:
		needed, useless := s.later(units, now, v)
		s.addByLot(chosen, func(i int) bool { return needed[i] || useless[i] }, units, v)
		s.addByLot(chosen, func(i int) bool { return needed[i] && roomy }, units, v)
	case v.best && s.cfg.Shortlist: // those that have not been called may meet the request
		s.addByLot(chosen, func(int) bool { return false }, units, v)
	default:
		s.addRanked(chosen, units, v)
		s.addByLot(chosen, func(i int) bool { return byPrice && roomy && s.asked[i] != nil }, units, v)
	}
	return slices.Collect(maps.Keys(chosen)) // any order: enlist sorts
}

// roomy reports whether at least half of the sellers that were called have made an offer. Where
// machines are full, nobody is spared: it takes more calls to find those that are not.
func (s *scout) roomy() bool {
	called, offered := 0, 0
	for _, b := range s.asked {
		if b != nil {
			called++
			if len(b.prices) > 0 {
				offered++
			}
		}
	}
	return called > 0 && 2*offered >= called
}

// addRanked adds those with the lowest expected prices for each unit, up to the part of the
// budget that does not go by lot.
func (s *scout) addRanked(chosen map[int]bool, units []int, v view) {
	ranked := make([]shortlist, len(units))
	for n, u := range units {
		ranked[n] = s.rank(u, v)
	}
	s.addFirst(chosen, ranked, s.cfg.Budget-s.byLot())
}

// addFirst adds those that are first on the lists, until most are chosen.
func (s *scout) addFirst(chosen map[int]bool, lists []shortlist, most int) {
	for place := range s.cfg.Budget {
		for _, l := range lists {
			if place < len(l) && len(chosen) < most {
				chosen[l[place].seller] = true
			}
		}
	}
}

// later returns the most promising once the lowest asks of this round stand, and those that
// cannot bid then.
func (s *scout) later(units []int, now []shortlist, v view) (needed, useless map[int]bool) {
	next := view{left: v.left - 1, opens: make([]protocol.Credits, len(s.cfg.Wants))}
	for n, l := range now {
		next.opens[units[n]] = math.MaxInt64
		if len(l) > 0 {
			next.opens[units[n]] = l[0].ask
		}
	}
	needed = map[int]bool{}
	s.addRanked(needed, units, next)
	useless = map[int]bool{}
	for i := range s.cfg.Sellers {
		useless[i] = !s.couldAny(i, units, next)
	}
	return needed, useless
}

// openers are those that ask least in this round, for each unit. In the first one, a seller with
// a list price does not bid above it.
func (s *scout) openers(units []int, v view) []shortlist {
	v.left = 1
	lists := make([]shortlist, len(units))
	for n, u := range units {
		for i := range s.cfg.Sellers {
			ask, ok := s.expected(i, u, v)
			if s.asks == 0 {
				ask = s.cfg.Prospects[i].Start
			}
			if r := (ranking{ask, s.lots[i], i}); ok && lists[n].takes(r, openers) {
				lists[n] = lists[n].with(r, openers)
			}
		}
	}
	return lists
}

// openers are called for what they ask in a round: several, since some have no room.
const openers = 8

// byLot returns how much of the budget goes by lot. A price band does not tell when
// a machine is free.
func (s *scout) byLot() int {
	switch {
	case s.cfg.Objective == protocol.ObjectiveTime:
		return s.cfg.Budget
	case s.cfg.Shortlist:
		return s.cfg.Budget / shortLotShare
	}
	return s.cfg.Budget / lotShare
}

// lotShare is the part of the budget that goes by lot if only the price counts, and
// shortLotShare that of a shortlist. Asks on it that differ by less than 1/alike of the
// lowest are in the order of their lots, so that not all buyers call the same sellers.
const (
	lotShare      = 8
	shortLotShare = 2
	alike         = 40
)

// addByLot fills the budget with sellers that could bid on any of the units, except some.
func (s *scout) addByLot(chosen map[int]bool, except func(seller int) bool, units []int, v view) {
	list := make(shortlist, 0, s.cfg.Budget+1)
	free := s.cfg.Budget - len(chosen)
	for i := range s.cfg.Sellers {
		r := ranking{seller: i, lot: s.lots[i]}
		if s.cfg.Shortlist && s.asked[i] != nil { // those that have not been called first
			r.ask = 1
		}
		if chosen[i] || except(i) || !list.takes(r, free) || !s.couldAny(i, units, v) {
			continue
		}
		list = list.with(r, free)
	}
	for _, r := range list {
		chosen[r.seller] = true
	}
}

func (s *scout) couldAny(i int, units []int, v view) bool {
	return slices.ContainsFunc(units, func(u int) bool {
		_, ok := s.expected(i, u, v)
		return ok
	})
}

// rank returns the sellers with the lowest expected prices for a unit.
func (s *scout) rank(unit int, v view) shortlist {
	list := make(shortlist, 0, s.cfg.Budget+1)
	step := s.step(unit, v)
	for i, id := range s.cfg.Sellers {
		ask, ok := s.expected(i, unit, v)
		r := ranking{ask / step, s.lots[i], i}
		if ok && list.takes(r, s.cfg.Budget) && s.sellers.timing.Due(id) {
			list = list.with(r, s.cfg.Budget)
		}
	}
	return list
}

// step is the difference between asks that counts.
func (s *scout) step(unit int, v view) protocol.Credits {
	if !s.cfg.Shortlist {
		return 1
	}
	lowest := protocol.Credits(0)
	for i := range s.cfg.Sellers {
		if ask, ok := s.expected(i, unit, v); ok && (lowest == 0 || ask < lowest) {
			lowest = ask
		}
	}
	return max(lowest/alike, 1)
}

// expected returns a seller's expected price for a unit, and whether it could beat
// the offers that stand.
func (s *scout) expected(i, unit int, v view) (protocol.Credits, bool) {
	p, b := &s.cfg.Prospects[i], s.asked[i]
	if !p.Units.Has(unit) || b != nil && b.hopeless(unit, v.best) {
		return 0, false
	}
	from := s.standing.ceilings[unit]
	if v.best {
		from = p.Start
	}
	if v.opens != nil {
		from = min(from, v.opens[unit])
	}
	if p.Min > from || !v.best && p.Min == from && s.standing.single[unit] {
		return 0, false
	}
	drop := p.drop()
	if b != nil {
		if ask, ok := b.prices[unit]; ok && !v.best && (ask < from || ask == from && s.leaders[unit] == s.cfg.Sellers[i]) {
			return 0, false // its own offer is the one to beat
		}
		if b.measured {
			drop = b.drop
		}
	}
	if s.cfg.Shortlist { // the price at the end counts
		hi, fall := bits.Mul64(uint64(drop), uint64(v.left))
		if hi > 0 || fall >= uint64(from) {
			return p.Min, true
		}
		drop = protocol.Credits(fall)
	}
	return max(from-drop, p.Min), true
}

// hear counts the proposals in a gossiped round. Beyond the budget it takes no more.
func (s *scout) hear(now time.Time, id protocol.AgentID, b *bidder, p message.Proposal) {
	if s.taken < s.cfg.Budget && s.standing.take(now, id, b, p) {
		s.taken++
	}
}

// aim returns how many answers a gossiped call requests: below the budget, so that
// chance seldom exceeds it.
func (s *scout) aim() int { return max(1, s.cfg.Budget-s.cfg.Budget/4) }

// sweep begins a gossiped round and returns how many of how many sellers should
// answer. If none of n did, fewer than 3 in n of the rest would, at 95 %. So the
// chance rises from call to call until everybody is asked.
func (s *scout) sweep() (budget, among int) {
	replied := 0
	for _, x := range s.asked {
		if x != nil && x.replied {
			replied++
		}
	}
	s.taken = 0
	if s.among == 0 {
		s.among = 3 * len(s.cfg.Sellers) / (replied + 2)
	} else {
		s.among = 3 * s.among / s.aim()
	}
	s.swept = s.among <= s.aim()
	return s.aim(), max(s.among, s.aim())
}

// ranking is a seller's place: the lower price, then the lower lot.
type ranking struct {
	ask    protocol.Credits
	lot    uint64
	seller int
}

func (r ranking) before(o ranking) bool {
	if r.ask != o.ask {
		return r.ask < o.ask
	}
	if r.lot != o.lot {
		return r.lot < o.lot
	}
	return r.seller < o.seller
}

// shortlist has the first rankings, in order.
type shortlist []ranking

func (l shortlist) takes(r ranking, most int) bool {
	return most > 0 && (len(l) < most || r.before(l[len(l)-1]))
}

func (l shortlist) with(r ranking, most int) shortlist {
	at, _ := slices.BinarySearchFunc(l, r, func(a, b ranking) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	l = slices.Insert(l, at, r)
	return l[:min(len(l), most)]
}
