package user

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/rfql"
)

// wantsOf makes a document the wants that offers are checked against; maxWait bounds how
// long after now a unit without a start of its own may begin.
func wantsOf(doc rfql.Document, now time.Time, maxWait time.Duration) []auction.Want {
	wants := make([]auction.Want, doc.Len())
	for i, q := range doc.Requests() {
		wants[i] = auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores, Nodes: q.Nodes, Contract: q.Contract}
		if maxWait > 0 {
			wants[i].LastStart = protocol.Later(now, q.NotBefore).Add(maxWait)
		}
	}
	return wants
}

// prospectsOf is the part of the sellers' presences that decides which of them to
// ask. A seller that does not accept the terms matches nothing.
func prospectsOf(requests []rfql.Request, terms protocol.Terms, sellers []Known) []auction.Prospect {
	list := make([]auction.Prospect, len(sellers))
	for i := range sellers {
		p := &sellers[i].Presence
		list[i] = auction.Prospect{Start: p.Start, Min: p.Min}
		if !slices.Contains(p.Terms, terms) {
			continue
		}
		for _, q := range requests {
			if len(rfql.Match(q, p.Properties)) == 0 {
				list[i].Units.Add(q.Unit)
			}
		}
	}
	return list
}
