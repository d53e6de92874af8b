package clearing

import (
	"slices"
	"time"

	"ramp/protocol"
)

// Bounds of the tables of rows, so that no seller can make them large. A table has a row for
// each instant at which an item starts.
const (
	// MaxTables is the most that the items of all sellers with joint capacity, times their
	// instants, may amount to. Every seller has an equal share, but at most half.
	// A seller's bids that end last are ignored beyond it.
	MaxTables = 1 << 22
	// MaxCutRows is the most instants of a seller for which implied rows are made. Without them
	// the search is slower.
	MaxCutRows = 128
)

// rowPlan has the rows that each bid uses, and the bids that exceed their capacity.
type rowPlan struct {
	uses    [][]use
	dropped []bool
	most    int // items times instants of a seller
}

// row is an instant at which a seller's cores may run short.
type row struct {
	capacity int64
	cut      bool  // follows from another row
	users    []use // row is the bid's index here
}

// planRows makes the rows of all sellers. Only starts need a row: at other instants
// demand does not rise and capacity does not fall.
func (m *model) planRows(p *Problem, bids []*Bid) rowPlan {
	plan := rowPlan{uses: make([][]use, len(bids)), dropped: make([]bool, len(bids))}
	if len(p.Capacity) == 0 {
		return plan
	}
	bySeller, order := map[protocol.AgentID][]int{}, []protocol.AgentID{}
	for i, b := range bids {
		if len(p.Capacity[b.Seller]) == 0 {
			continue
		}
		if bySeller[b.Seller] == nil {
			order = append(order, b.Seller)
		}
		bySeller[b.Seller] = append(bySeller[b.Seller], i)
	}
	plan.most = min(MaxTables/max(len(order), 1), MaxTables/2)
	for _, id := range order {
		m.planSeller(&plan, bids, bySeller[id], p.fixedSlots(id), p.Capacity[id])
	}
	return plan
}

func (p *Problem) fixedSlots(id protocol.AgentID) []protocol.Slot {
	var slots []protocol.Slot
	for i := range p.Fixed {
		if p.Fixed[i].Seller == id {
			for _, it := range p.Fixed[i].Offer.Items {
				slots = append(slots, it.Slot)
			}
		}
	}
	return slots
}

func (m *model) planSeller(plan *rowPlan, bids []*Bid, own []int, fixed []protocol.Slot, spans []protocol.Span) {
	own, instants := plan.clip(bids, own, fixed, spans)
	last := make([]*row, 1, cuts+1)
	if len(instants) <= MaxCutRows {
		last = last[:cuts+1]
	}
	for _, t := range instants {
		m.work += len(own) * len(last)
		r, limited := rowAt(t, bids, own, fixed, spans)
		if !limited {
			continue
		}
		r.users = plan.dropLarge(r)
		for k := range last {
			last[k] = m.follow(plan, bids, last[k], r.counting(int64(k)))
		}
	}
	for _, r := range last {
		m.flush(plan, r)
	}
}

// follow returns the row to compare with the next one. It flushes last if r is independent of it.
func (m *model) follow(plan *rowPlan, bids []*Bid, last *row, r row) *row {
	switch {
	case !r.binds(bids) || last != nil && last.covers(r):
		return last
	case last != nil && !r.covers(*last):
		m.flush(plan, last)
	}
	return &r
}

// cuts is how many further rows each row implies.
const cuts = 3

// counting returns a row that follows from r and bounds better, since offers are
// bought whole: with capacity R, at most k offers that need more than R/(k+1) fit, and
// one that needs more than n times as much counts n times. For k of 0 it is r itself.
func (r row) counting(k int64) row {
	if k == 0 {
		return r
	}
	c := row{capacity: k, cut: true}
	for _, u := range r.users {
		if n := (u.cores*(k+1) - 1) / r.capacity; n > 0 {
			c.users = append(c.users, use{u.row, n})
		}
	}
	return c
}

// clip drops a seller's last bids until its table is within bounds, and returns the others
// and its instants.
func (plan *rowPlan) clip(bids []*Bid, own []int, fixed []protocol.Slot, spans []protocol.Span) ([]int, []time.Time) {
	for {
		instants, items := starts(bids, own, fixed, spans), 0
		for _, i := range own {
			items += len(bids[i].Offer.Items)
		}
		if items*len(instants) <= plan.most || len(own) == 0 {
			return own, instants
		}
		keep := len(own) * 3 / 4
		for _, late := range own[keep:] {
			plan.dropped[late] = true
		}
		own = own[:keep]
	}
}

// flush makes r a row of the model.
func (m *model) flush(plan *rowPlan, r *row) {
	if r == nil {
		return
	}
	for _, u := range r.users {
		plan.uses[u.row] = append(plan.uses[u.row], use{len(m.capacity), u.cores})
	}
	m.capacity = append(m.capacity, r.capacity)
	m.cut = append(m.cut, r.cut)
}

func starts(bids []*Bid, own []int, fixed []protocol.Slot, spans []protocol.Span) []time.Time {
	var ts []time.Time
	for _, i := range own {
		for _, it := range bids[i].Offer.Items {
			ts = append(ts, it.Slot.Start)
		}
	}
	for _, s := range fixed {
		ts = append(ts, s.Start)
	}
	for _, s := range spans {
		ts = append(ts, s.Start)
	}
	slices.SortFunc(ts, time.Time.Compare)
	return slices.CompactFunc(ts, time.Time.Equal)
}

// rowAt is the demand for cores at t, and the capacity; limited is false if the seller
// states no joint capacity.
func rowAt(t time.Time, bids []*Bid, own []int, fixed []protocol.Slot, spans []protocol.Span) (r row, limited bool) {
	for _, s := range spans {
		if during(t, s.Start, s.End) && (!limited || int64(s.Cores) < r.capacity) {
			r.capacity, limited = int64(s.Cores), true
		}
	}
	if !limited {
		return row{}, false
	}
	for _, s := range fixed {
		if during(t, s.Start, s.End) {
			r.capacity -= int64(s.Cores)
		}
	}
	for _, i := range own {
		var cores int64
		for _, it := range bids[i].Offer.Items {
			if during(t, it.Slot.Start, it.Slot.End) {
				cores += int64(it.Slot.Cores)
			}
		}
		if cores > 0 {
			r.users = append(r.users, use{i, cores})
		}
	}
	return r, true
}

func during(t, start, end time.Time) bool { return !t.Before(start) && t.Before(end) }

// dropLarge drops the bids that exceed the capacity of r.
func (plan *rowPlan) dropLarge(r row) []use {
	rest := r.users[:0]
	for _, u := range r.users {
		if u.cores > r.capacity {
			plan.dropped[u.row] = true
		} else {
			rest = append(rest, u)
		}
	}
	return rest
}

// binds reports whether one offer for each unit might exceed the capacity.
func (r row) binds(bids []*Bid) bool {
	var most [protocol.MaxUnits]int64 // by first unit
	var sum int64
	for _, u := range r.users {
		m := &most[firstUnit(bids[u.row])]
		sum += max(u.cores-*m, 0)
		*m = max(*m, u.cores)
	}
	return sum > r.capacity
}

// covers reports whether a set that fits r always fits s.
func (r row) covers(s row) bool {
	if r.capacity > s.capacity || len(r.users) < len(s.users) {
		return false
	}
	i := 0
	for _, u := range s.users {
		for i < len(r.users) && r.users[i].row < u.row {
			i++
		}
		if i == len(r.users) || r.users[i].row != u.row || r.users[i].cores < u.cores {
			return false
		}
	}
	return true
}
