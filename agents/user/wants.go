package user

import (
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/rfql"
)

// wantsOf reads the document of an order into what offers are checked against;
// maxWait bounds how long after now a unit without a start of its own may begin.
func wantsOf(document []byte, now time.Time, maxWait time.Duration) ([]auction.Want, []rfql.Request, error) {
	doc, err := rfql.Parse(document, now)
	if err != nil {
		return nil, nil, err
	}
	wants := make([]auction.Want, doc.Len())
	for i, q := range doc.Requests() {
		wants[i] = auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores, Contract: q.Contract}
		if maxWait > 0 {
			from := now
			if q.NotBefore.After(now) {
				from = q.NotBefore
			}
			wants[i].LastStart = from.Add(maxWait)
		}
	}
	return wants, doc.Requests(), nil
}

// prospectsOf are what sellers told of themselves, as far as it tells which of
// them to ask. One that deals on other terms matches nothing.
func prospectsOf(requests []rfql.Request, terms protocol.Terms, sellers []Known) []auction.Prospect {
	list := make([]auction.Prospect, len(sellers))
	for i := range sellers {
		told := &sellers[i].Presence
		list[i] = auction.Prospect{Start: told.Start, Min: told.Min}
		if !slices.Contains(told.Terms, terms) {
			continue
		}
		for _, q := range requests {
			if len(rfql.Match(q, told.Properties)) == 0 {
				list[i].Units.Add(q.Unit)
			}
		}
	}
	return list
}
