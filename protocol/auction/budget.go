package auction

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"ramp/protocol"
)

// The response budget: in a market too large to ask everybody, a buyer calls in
// each round those whose price bands promise the lowest asks, and a few by
// chance; docs/decisions/0019 says why. Units that they leave without an offer
// are asked of everybody by gossip, and sellers answer that by chance.

// DefaultBudget is about how many sellers a buyer asks in a round of a large
// market.
const DefaultBudget = 64

// nominalRounds is in how many rounds a seller is taken to come down from its
// start price to its least, until it has been heard.
const nominalRounds = 4

// Prospect is what is known of a seller before it is asked. Nothing rests on it
// but whether the seller is called.
type Prospect struct {
	Start, Min protocol.Credits // its price band per core-hour
	Units      UnitSet          // that it matches in static terms
}

// UnitSet is a set of units of a document.
type UnitSet [protocol.MaxUnits / 64]uint64

// Add puts unit, 0..protocol.MaxUnits-1, into the set.
func (s *UnitSet) Add(unit int) { s[unit/64] |= 1 << (unit % 64) }

// Has reports whether unit is in the set.
func (s *UnitSet) Has(unit int) bool { return s[unit/64]&(1<<(unit%64)) != 0 }

// Chosen reports whether a seller answers a gossiped call with a budget: the same
// for the same call, and for about budget of among sellers. Nobody can foresee
// it before the conversation has a name.
func Chosen(conversation string, round int, seller protocol.AgentID, budget, among int) bool {
	if budget <= 0 || budget >= among {
		return true
	}
	whole, _ := bits.Mul64(lot(conversation, round, seller), uint64(among))
	return whole < uint64(budget)
}

// lot is a number that looks drawn, the same for the same arguments.
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

// scout chooses whom a buyer with a budget calls. Sellers go by their index in
// the buyer's configuration.
type scout struct {
	lots  []uint64
	asked []*bidder // nil: not called in this auction yet
	among int       // of the last call by gossip; 0: there was none
	swept bool      // everybody was asked by gossip
	taken int       // proposals that counted in a gossiped round
}

func newScout(cfg BuyerConfig) *scout {
	s := &scout{lots: make([]uint64, len(cfg.Sellers)), asked: make([]*bidder, len(cfg.Sellers))}
	for i, id := range cfg.Sellers {
		s.lots[i] = lot(cfg.Conversation, 0, id)
	}
	return s
}

// budgeted reports whether the buyer asks some for all.
func (b *Buyer) budgeted() bool { return b.scout != nil }

// mostRounds is how many rounds the auction has. One that asks some for all has
// one more: its first finds out whose machines are idle, which price bands do not
// say. It takes no longer, for those who are called by name do not keep silent.
func (b *Buyer) mostRounds() int {
	if !b.budgeted() {
		return b.cfg.Rounds
	}
	return min(b.cfg.Rounds+1, protocol.MaxRounds)
}

// lacking are the units of which nobody offers one alone.
func (b *Buyer) lacking() []int {
	var list []int
	for u, offered := range b.single {
		if !offered {
			list = append(list, u)
		}
	}
	return list
}

// scoutCallees are who gets the cfp of a round: nobody, if no seller that is
// known could beat what stands.
func (b *Buyer) scoutCallees(round int, best bool) []protocol.AgentID {
	lacking := b.lacking()
	if round > 1 && !best && len(lacking) > 0 && !b.scout.swept {
		return []protocol.AgentID{protocol.Everyone}
	}
	units := lacking
	if !best || len(lacking) == 0 {
		units = b.allUnits()
	}
	chosen := b.promising(units, best)
	if len(chosen) == 0 && (round == 1 || best) { // those that nobody told of may be there
		return []protocol.AgentID{protocol.Everyone}
	}
	return b.enlist(chosen)
}

func (b *Buyer) allUnits() []int {
	list := make([]int, len(b.cfg.Wants))
	for u := range list {
		list[u] = u
	}
	return list
}

// enlist makes bidders of those that are called for the first time.
func (b *Buyer) enlist(chosen []int) []protocol.AgentID {
	slices.Sort(chosen)
	ids := make([]protocol.AgentID, len(chosen))
	for n, i := range chosen {
		id := b.cfg.Sellers[i]
		if b.sellers[id] == nil {
			b.sellers[id] = &bidder{}
			b.order = append(b.order, id)
		}
		b.scout.asked[i] = b.sellers[id]
		b.sellers[id].called = true
		ids[n] = id
	}
	return ids
}

// promising are the sellers that a round calls: unit by unit those with the
// lowest asks to be expected, and some by lot, who may be better than they say.
func (b *Buyer) promising(units []int, best bool) []int {
	ranked := make([][]ranking, len(units))
	for n, u := range units {
		ranked[n] = b.rank(u, best)
	}
	chosen := map[int]bool{}
	most := b.cfg.Budget - b.byLot()
	for place := 0; place < b.cfg.Budget && len(chosen) < most; place++ {
		for n := range ranked {
			if place < len(ranked[n]) && len(chosen) < most {
				chosen[ranked[n][place].seller] = true
			}
		}
	}
	b.addByLot(chosen, units, best)
	list := make([]int, 0, len(chosen))
	for i := range chosen { // in any order: enlist sorts
		list = append(list, i)
	}
	return list
}

// byLot is how many of the budget are called by lot: a price band says nothing
// of when a machine is free.
func (b *Buyer) byLot() int {
	if b.cfg.Objective == protocol.ObjectiveTime {
		return b.cfg.Budget
	}
	return b.cfg.Budget / lotShare
}

// lotShare is which part of the budget goes by lot if only the price counts.
const lotShare = 8

// addByLot fills the budget with sellers that could bid on any of the units.
func (b *Buyer) addByLot(chosen map[int]bool, units []int, best bool) {
	list := make(shortlist, 0, b.cfg.Budget+1)
	free := b.cfg.Budget - len(chosen)
	for i := range b.cfg.Sellers {
		r := ranking{seller: i, lot: b.scout.lots[i]}
		if chosen[i] || !list.takes(r, free) || !b.couldAny(i, units, best) {
			continue
		}
		list = list.with(r, free)
	}
	for _, r := range list {
		chosen[r.seller] = true
	}
}

func (b *Buyer) couldAny(i int, units []int, best bool) bool {
	for _, u := range units {
		if _, ok := b.expected(i, u, best); ok {
			return true
		}
	}
	return false
}

// rank are the sellers with the lowest asks to be expected for a unit.
func (b *Buyer) rank(unit int, best bool) shortlist {
	list := make(shortlist, 0, b.cfg.Budget+1)
	for i, id := range b.cfg.Sellers {
		ask, ok := b.expected(i, unit, best)
		r := ranking{ask, b.scout.lots[i], i}
		if ok && list.takes(r, b.cfg.Budget) && b.timing.Due(id) {
			list = list.with(r, b.cfg.Budget)
		}
	}
	return list
}

// expected is what a seller is expected to ask for a unit, and whether it could
// beat what stands.
func (b *Buyer) expected(i, unit int, best bool) (protocol.Credits, bool) {
	p, s := &b.cfg.Prospects[i], b.scout.asked[i]
	if !p.Units.Has(unit) || s != nil && s.hopeless(unit, best) {
		return 0, false
	}
	from := b.ceilings[unit]
	if best {
		from = p.Start
	}
	if p.Min > from || !best && p.Min == from && b.single[unit] {
		return 0, false
	}
	drop := max(0, p.Start-p.Min) / nominalRounds
	if s != nil {
		if ask, ok := s.asks[unit]; ok && ask <= from && !best {
			return 0, false // its offer stands as it is
		}
		if s.measured {
			drop = s.drop
		}
	}
	return max(from-drop, p.Min), true
}

// hopeless reports whether a seller that was called has shown that it will make
// no offer for a unit in this auction.
func (s *bidder) hopeless(unit int, best bool) bool {
	if s.called && !s.heard {
		return true // or cannot be reached
	}
	for _, r := range s.reasons {
		if r.Unit != unit && r.Unit != protocol.AllUnits {
			continue
		}
		switch r.Code {
		case protocol.CodeStands:
		case protocol.CodePrice, protocol.CodeBusy, protocol.CodeCeiling:
			if !best {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// learn notes what a seller asked, and how far it went below what stood when it
// was called: its machine is as busy in the next round.
func (b *Buyer) learn(s *bidder, it protocol.Item) {
	if !b.budgeted() {
		return
	}
	if s.asks == nil {
		s.asks = map[int]protocol.Credits{}
	}
	s.asks[it.Unit] = it.Price
	if drop := b.stood.ceilings[it.Unit] - it.Price; b.state == Calling && drop >= 0 {
		s.drop, s.measured = drop, true
	}
}

// ranking is a seller's place: the lower ask, then the lower lot.
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

// shortlist are the first so many rankings, in order.
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

// aim is how many answers a gossiped call asks for: so many below the budget that
// chance seldom exceeds it.
func (b *Buyer) aim() int { return max(1, b.cfg.Budget-b.cfg.Budget/4) }

// sweep says in a gossiped call how many of how many should answer. If none of
// n did, fewer than 3 in n of the rest would, at 95 %; so the chance rises from
// call to call until everybody is asked.
func (b *Buyer) sweep() (budget, among int) {
	s, heard := b.scout, 0
	for _, x := range s.asked {
		if x != nil && x.heard {
			heard++
		}
	}
	if s.among == 0 {
		s.among = 3 * len(b.cfg.Sellers) / (heard + 2)
	} else {
		s.among = 3 * s.among / b.aim()
	}
	s.swept = s.among <= b.aim()
	return b.aim(), max(s.among, b.aim())
}
