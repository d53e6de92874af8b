package user

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Followed shows followed to the tests of package user_test.
type Followed struct{ f followed }

func NewFollowed() *Followed { return &Followed{newFollowed()} }

func (f *Followed) Add(c protocol.ContractID, id string, at time.Time) {
	row := &Row{}
	row.ID, row.Contract = id, c
	f.f.add(&following{row: row, askAt: at})
}

func (f *Followed) Drop(c protocol.ContractID) { f.f.drop(c) }

func (f *Followed) PutOff(c protocol.ContractID, until time.Time) {
	if a := f.f.by[c]; a != nil {
		f.f.putOff(a, until)
	}
}

// Due are the contracts in order, and how many of them are found by contract.
func (f *Followed) Due() (list []protocol.ContractID, found int) {
	for _, a := range f.f.due {
		list = append(list, a.row.Contract)
		if f.f.by[a.row.Contract] == a {
			found++
		}
	}
	return list, found
}

// Contracts shows settledContracts.
type Contracts struct{ s settledContracts }

func NewContracts() *Contracts {
	return &Contracts{settledContracts{ends: map[protocol.ContractID]time.Time{}}}
}

func (c *Contracts) Add(now time.Time, id protocol.ContractID, ends time.Time) {
	c.s.add(now, &Purchase{Contract: id, Units: []Unit{{End: ends}}}, nil, now)
}

func (c *Contracts) Has(id protocol.ContractID) bool {
	at := c.s.find(id)
	return at >= 0 && c.s.list[at].id == id
}

func (c *Contracts) Len() int { return len(c.s.list) }

// OverRuns launches as many programs, all of which are over at once, and returns those that are kept, in order
// of their IDs.
func OverRuns(now time.Time, ids []string) (kept []string, most int) {
	r := &runs{cfg: &Config{Credential: &identity.Credential{}}, by: map[string]*run{}}
	for i, id := range ids {
		r.launch(now.Add(time.Duration(i)), message.Run{ID: id, Created: now.Add(time.Duration(i)), Units: []message.RunUnit{{Status: message.LaunchStatus{Stage: message.StageFailed}}}})
	}
	return slices.Sorted(maps.Keys(r.by)), maxRuns
}

// FollowPaid is which paid purchases, whose slots end at these times, are followed after a restart.
func FollowPaid(now time.Time, ends []time.Time) map[int]bool {
	u, followed := usage{followed: newFollowed()}, map[int]bool{}
	for i, end := range ends {
		row := &Row{Purchase: Purchase{ID: strconv.Itoa(i), Settled: true, Contract: protocol.ContractID(strconv.Itoa(i)), Units: []Unit{{State: StateSettled, End: end}}}}
		followed[i] = len(u.follow(now, row, true).Save) == 0 && u.followed.by[row.Contract] != nil
	}
	return followed
}
