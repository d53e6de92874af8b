package user

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// followed is purchases by contract, and in the order in which something is to be
// done about them: an agent that has bought thousands looks at those that are due.
type followed struct {
	by  map[protocol.ContractID]*awaited
	due []*awaited // by time, then by purchase
}

func newFollowed() followed { return followed{by: map[protocol.ContractID]*awaited{}} }

func (f *followed) len() int { return len(f.by) }

// of is the purchase with a contract; nil if it is not followed.
func (f *followed) of(c protocol.ContractID) *awaited { return f.by[c] }

// first is what is due before all others; nil if nothing is followed.
func (f *followed) first() *awaited {
	if len(f.due) == 0 {
		return nil
	}
	return f.due[0]
}

func (f *followed) add(a *awaited) {
	f.drop(a.row.Purchase.Contract)
	f.by[a.row.Purchase.Contract] = a
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
func (f *followed) putOff(a *awaited, until time.Time) {
	f.drop(a.row.Purchase.Contract)
	a.askAt = until
	f.add(a)
}

func earlierDue(a, b *awaited) int {
	return cmp.Or(a.askAt.Compare(b.askAt), strings.Compare(a.row.Purchase.ID, b.row.Purchase.ID))
}
