package user

import (
	"time"

	"ramp/protocol"
)

// Followed is what the tests of package user_test see of followed.
type Followed struct{ f followed }

func NewFollowed() *Followed { return &Followed{newFollowed()} }

func (f *Followed) Add(c protocol.ContractID, id string, at time.Time) {
	row := &Row{}
	row.Purchase.ID, row.Purchase.Contract = id, c
	f.f.add(&awaited{row: row, askAt: at})
}

func (f *Followed) Drop(c protocol.ContractID) { f.f.drop(c) }

func (f *Followed) PutOff(c protocol.ContractID, until time.Time) {
	if a := f.f.of(c); a != nil {
		f.f.putOff(a, until)
	}
}

// Due are the contracts in order; they must be as many as are found by contract.
func (f *Followed) Due() (list []protocol.ContractID, found int) {
	for _, a := range f.f.due {
		list = append(list, a.row.Purchase.Contract)
		if f.f.of(a.row.Purchase.Contract) == a {
			found++
		}
	}
	return list, found
}

// Kept is what they see of keptContracts.
type Kept struct{ r Role }

func NewKept() *Kept { return &Kept{Role{kept: newKeptContracts()}} }

func (k *Kept) Keep(now time.Time, c protocol.ContractID, ends time.Time) {
	k.r.keep(now, keptContract{id: c, ends: ends})
}

func (k *Kept) Has(c protocol.ContractID) bool {
	at := k.r.kept.find(c)
	return at >= 0 && k.r.kept.list[at].id == c
}

func (k *Kept) Len() int { return k.r.kept.len() }
