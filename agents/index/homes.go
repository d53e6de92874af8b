package index

import (
	"maps"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// homes are the servers that an agent knows, and what they say about the market.
type homes struct {
	by map[protocol.AgentID]*home
}

// home is a server.
type home struct {
	issuer  string
	expires time.Time
	market  int              // sellers, as it announces
	census  []message.Census // its last
	asked   time.Time        // when the census came
	avoided time.Time        // not asked until then
}

func newHomes() homes { return homes{map[protocol.AgentID]*home{}} }

// meet notes a server's presence. Beyond MaxServers it takes no others until one leaves.
func (h *homes) meet(now time.Time, from protocol.AgentID, p message.Presence) {
	x := h.by[from]
	switch {
	case p.Index == 0 || p.TTL == 0:
		delete(h.by, from)
		return
	case x == nil && len(h.by) >= MaxServers:
		maps.DeleteFunc(h.by, func(_ protocol.AgentID, x *home) bool { return !now.Before(x.expires) })
		if len(h.by) >= MaxServers {
			return
		}
	}
	if x == nil {
		x = &home{}
		h.by[from] = x
	}
	x.issuer, x.expires, x.market = p.Issuer, now.Add(min(p.TTL, protocol.MaxTTL)), p.Index-1
}

// list returns the servers that are present, in order; usable leaves out those to avoid,
// while others are left.
func (h *homes) list(now time.Time, usable bool) []Home {
	var list, avoided []Home
	for _, id := range slices.Sorted(maps.Keys(h.by)) {
		switch x := h.by[id]; {
		case !now.Before(x.expires):
		case usable && now.Before(x.avoided):
			avoided = append(avoided, Home{id, x.issuer})
		default:
			list = append(list, Home{id, x.issuer})
		}
	}
	if len(list) == 0 {
		return avoided
	}
	return list
}

// avoid has a server not asked for a while.
func (h *homes) avoid(now time.Time, id protocol.AgentID) {
	if x := h.by[id]; x != nil {
		x.avoided = now.Add(Avoided)
	}
}

// told notes the census of a server's answer.
func (h *homes) told(now time.Time, from protocol.AgentID, c []message.Census) {
	if x := h.by[from]; x != nil && len(c) > 0 {
		x.census, x.asked = c, now
	}
}

// market is the number of sellers: the median of the servers' announcements.
func (h *homes) market(now time.Time) int {
	var list []int
	for _, x := range h.by { // any order: sorted
		if now.Before(x.expires) {
			list = append(list, x.market)
		}
	}
	return median(list)
}

// fresh counts the servers whose census is not older than PutEvery.
func (h *homes) fresh(now time.Time) int {
	n := 0
	for _, x := range h.by { // any order: counted
		if !x.asked.IsZero() && now.Before(x.asked.Add(PutEvery)) {
			n++
		}
	}
	return n
}

// class is the number of sellers of a class that accept the terms, and by how many bits the class
// is split: the medians of the servers' last censuses, so that a minority cannot move them.
func (h *homes) class(terms protocol.Terms, class int) (count, bits int) {
	var counts, splits []int
	for _, x := range h.by { // any order: sorted
		if x.asked.IsZero() {
			continue
		}
		i := slices.IndexFunc(x.census, func(c message.Census) bool { return c.Shard.Terms == terms && c.Shard.Class == class })
		if i < 0 {
			counts = append(counts, 0)
			continue
		}
		counts, splits = append(counts, x.census[i].Count), append(splits, x.census[i].Shard.Bits)
	}
	return median(counts), median(splits)
}

// median is the upper one; zero for an empty list.
func median(list []int) int {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}
