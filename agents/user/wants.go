package user

import (
	"time"

	"ramp/protocol/auction"
	"ramp/rfql"
)

// wantsOf reads the document of an order into what offers are checked against;
// maxWait bounds how long after now a unit without a start of its own may begin.
func wantsOf(document []byte, now time.Time, maxWait time.Duration) ([]auction.Want, error) {
	doc, err := rfql.Parse(document, now)
	if err != nil {
		return nil, err
	}
	wants := make([]auction.Want, doc.Len())
	for i, q := range doc.Requests() {
		wants[i] = auction.Want{Ceiling: q.Price, NotBefore: q.NotBefore, End: q.End, Wall: q.Wall, Cores: q.Cores}
		if maxWait > 0 {
			from := now
			if q.NotBefore.After(now) {
				from = q.NotBefore
			}
			wants[i].LastStart = from.Add(maxWait)
		}
	}
	return wants, nil
}
