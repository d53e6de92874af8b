package user

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// followed holds purchases by contract, and in the order in which they are due: an
// agent with thousands of purchases looks only at those that are due.
type followed struct {
	by  map[protocol.ContractID]*following
	due []*following // by time, then by purchase
}

func newFollowed() followed { return followed{by: map[protocol.ContractID]*following{}} }

// purchase finds a followed purchase by its ID; nil: it is not followed.
func (f *followed) purchase(id string) *following {
	for _, a := range f.by { // in any order: there is one
		if a.row.ID == id {
			return a
		}
	}
	return nil
}

// first is the purchase that is due first; nil if nothing is followed.
func (f *followed) first() *following {
	if len(f.due) == 0 {
		return nil
	}
	return f.due[0]
}

func (f *followed) add(a *following) {
	f.drop(a.row.Contract)
	f.by[a.row.Contract] = a
	at, _ := slices.BinarySearchFunc(f.due, a, earlierDue)
	f.due = slices.Insert(f.due, at, a)
}

func (f *followed) drop(c protocol.ContractID) {
	a := f.by[c]
	if a == nil {
		return
	}
	delete(f.by, c)
	at, _ := slices.BinarySearchFunc(f.due, a, earlierDue)
	f.due = slices.Delete(f.due, at, at+1)
}

// putOff makes a purchase due later.
func (f *followed) putOff(a *following, until time.Time) {
	f.drop(a.row.Contract)
	a.askAt = until
	f.add(a)
}

func earlierDue(a, b *following) int {
	return cmp.Or(a.askAt.Compare(b.askAt), strings.Compare(a.row.ID, b.row.ID))
}
