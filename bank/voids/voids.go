// Package voids bounds what the void contracts of one user cost a bank: anybody makes them
// without money. Each user has an allowance of Allowance entries, which comes back evenly
// within protocol.OutcomeMemory. Beyond it no void contract gets an entry:
//
//	before settle-by: nothing voids it, and it stays undecided
//	after settle-by:  it lapses: it is void, and so is every contract of this user that
//	                  is not decided and settles no later
//
// The settle-by up to which a user's contracts have lapsed is durable and never falls. What
// settles by then is never settled any more, whatever any clock says.
package voids

import (
	"cmp"
	"fmt"

	"ramp/bank/row"
	"ramp/protocol"
)

// Table has a row for each user with lapsed contracts: agent ID -> settle-by.
const Table = "lapsed"

// Bounds.
const (
	Allowance = 1 << 8  // entries for void contracts of one user within protocol.OutcomeMemory
	MaxLapsed = 1 << 12 // users whose own lapsed contracts are known
)

// others is the key of all users beyond MaxLapsed. No agent has this ID.
const others protocol.AgentID = ".others"

// every is the time in which an allowance grows by one entry, in nanoseconds.
const every = int64(protocol.OutcomeMemory) / Allowance

// Users are those with void contracts. Times are in nanoseconds since 1970.
type Users struct {
	spent  map[protocol.AgentID]spending
	lapsed map[protocol.AgentID]int64 // and others
}

// spending is the part of an allowance that is used up.
type spending struct {
	entries int   // in memory
	whole   int64 // when all of the allowance is back
}

// New has no users.
func New() *Users {
	return &Users{spent: map[protocol.AgentID]spending{}, lapsed: map[protocol.AgentID]int64{}}
}

// Allows reports whether a user has an entry left.
func (us *Users) Allows(at int64, user protocol.AgentID) bool {
	return us.spent[user].whole+every-at <= int64(protocol.OutcomeMemory)
}

// Remember counts an entry that enters memory, in order of time.
func (us *Users) Remember(at int64, user protocol.AgentID) {
	s := us.spent[user]
	us.spent[user] = spending{s.entries + 1, max(s.whole, at) + every}
}

// Forget drops an entry that leaves memory.
func (us *Users) Forget(user protocol.AgentID) {
	s := us.spent[user]
	if us.spent[user] = (spending{s.entries - 1, s.whole}); s.entries == 1 {
		delete(us.spent, user)
	}
}

// Until is the settle-by up to which a user's undecided contracts have lapsed.
func (us *Users) Until(user protocol.AgentID) int64 { return max(us.lapsed[user], us.lapsed[others]) }

// Lapse returns the records of a contract that lapses. Beyond MaxLapsed users, the one with
// the earliest settle-by joins the others.
func (us *Users) Lapse(user protocol.AgentID, settleBy int64) []protocol.Record {
	if settleBy <= us.Until(user) {
		return nil
	}
	records := []protocol.Record{us.set(user, settleBy)}
	if len(us.lapsed) <= MaxLapsed {
		return records
	}
	least := user
	for id, at := range us.lapsed {
		if id != others && cmp.Or(cmp.Compare(at, us.lapsed[least]), cmp.Compare(id, least)) < 0 {
			least = id
		}
	}
	records = append(records, us.set(others, max(us.lapsed[others], us.lapsed[least])), protocol.Record{Table: Table, Key: string(least)})
	delete(us.lapsed, least)
	return records
}

func (us *Users) set(user protocol.AgentID, settleBy int64) protocol.Record {
	us.lapsed[user] = settleBy
	return protocol.Record{Table: Table, Key: string(user), Value: row.New(row.Version, 9).Time(settleBy)}
}

// Load reads a record of Table.
func (us *Users) Load(key string, value []byte) (err error) {
	us.lapsed[protocol.AgentID(key)], err = Decode(key, value)
	return err
}

// Decode is the settle-by in a record of Table.
func Decode(key string, value []byte) (settleBy int64, err error) {
	d := row.Read(value)
	settleBy = d.Time()
	return settleBy, d.DoneWith(fmt.Sprintf("lapsed contracts of %q", key))
}

// Sizes are the numbers of users in memory, and their bounds, if memory has at most so many
// entries.
func (us *Users) Sizes(entries int) []protocol.Size {
	return []protocol.Size{
		{Of: "users with void contracts", N: len(us.spent), Most: entries},
		{Of: "users with lapsed contracts", N: len(us.lapsed), Most: MaxLapsed + 1},
	}
}
