package user_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/user"
	"ramp/protocol"
)

// The oracle keeps a plain list and sorts it each time.
func TestWhatIsFollowedStaysInOrder(t *testing.T) {
	type entry struct {
		contract protocol.ContractID
		at       int
	}
	begun := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		f := user.NewFollowed()
		var want []entry
		without := func(c protocol.ContractID) {
			want = slices.DeleteFunc(want, func(e entry) bool { return e.contract == c })
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			c := protocol.ContractID(fmt.Sprint("contract-", rapid.IntRange(0, 12).Draw(t, "which")))
			at := rapid.IntRange(0, 5).Draw(t, "at")
			had := slices.ContainsFunc(want, func(e entry) bool { return e.contract == c })
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				f.Add(c, "p"+string(c), begun.Add(time.Duration(at)))
				without(c)
				want = append(want, entry{c, at})
			case 1:
				f.Drop(c)
				without(c)
			case 2:
				f.PutOff(c, begun.Add(time.Duration(at)))
				if without(c); had {
					want = append(want, entry{c, at})
				}
			}
			slices.SortFunc(want, func(a, b entry) int {
				if a.at != b.at {
					return a.at - b.at
				}
				return slices.Compare([]byte(a.contract), []byte(b.contract))
			})
			got, found := f.Due()
			if len(got) != len(want) || found != len(want) {
				t.Fatalf("%v, %d found; want %v", got, found, want)
			}
			for i := range want {
				if got[i] != want[i].contract {
					t.Fatalf("%v, want %v", got, want)
				}
			}
		}
	})
}

// The bank is asked once more about slots that ended while the agent was away, but those leave room for
// slots to come.
func TestPastPurchasesLeaveRoomForOthers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ends := []time.Time{now.Add(-30 * 24 * time.Hour)}
	const old, open = 6000, 3000
	for range old {
		ends = append(ends, now.Add(-time.Hour))
	}
	for range open {
		ends = append(ends, now.Add(time.Hour))
	}
	followed := user.FollowPaid(now, ends)
	if !followed[1] || followed[0] || followed[old] {
		t.Errorf("of an hour ago: the first %v, the last %v; of a month ago %v", followed[1], followed[old], followed[0])
	}
	for i := old + 1; i <= old+open; i++ {
		if !followed[i] {
			t.Fatalf("number %d of those to come is not followed", i-old)
		}
	}
}

// The oracle keeps the end of each contract, and looks at all of them.
func TestContractsAreKeptUntilTheyEnd(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		k := user.NewContracts()
		ends := map[protocol.ContractID]int{}
		now := 0
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now += rapid.IntRange(0, 2).Draw(t, "later")
			c := protocol.ContractID(fmt.Sprint("contract-", rapid.IntRange(0, 12).Draw(t, "which")))
			end := now + rapid.IntRange(-1, 6).Draw(t, "ends")
			k.Add(begun.Add(time.Duration(now)), c, begun.Add(time.Duration(end)))
			if end > now {
				for id, e := range ends {
					if e <= now {
						delete(ends, id)
					}
				}
				ends[c] = end
			}
			for i := range 13 {
				id := protocol.ContractID(fmt.Sprint("contract-", i))
				if _, want := ends[id]; k.Has(id) != want || k.Len() != len(ends) {
					t.Fatalf("at %d: %s is kept: %v, want %v; %d of %v", now, id, k.Has(id), want, k.Len(), ends)
				}
			}
		}
	})
}
