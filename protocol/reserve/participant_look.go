package reserve

import (
	"sort"
	"time"

	"ramp/protocol"
)

// leastLook is between two looks at a job that its contract may soon let the
// seller stop. So much longer than that contract says it runs at most.
const leastLook = time.Second

// nextLook is when there may be news of a slot that is running, of which so much
// was used by now: at its end, and when its seller may first stop it (001), were
// all its cores busy from now on. A job that used less is looked at again then.
func nextLook(u protocol.BundleUnit, used protocol.Usage, now time.Time) time.Time {
	at := u.Slot.End
	if u.Tariff.TimeLimit > 0 {
		at = protocol.Earlier(at, now.Add(u.Tariff.TimeLimit-used.Wall))
	}
	if u.Tariff.Prepay > 0 {
		at = protocol.Earlier(at, now.Add(usedUp(u, used, u.Slot.End.Sub(now))))
	}
	if soon := now.Add(leastLook); at.Before(soon) && now.After(u.Slot.Start) {
		at = soon
	}
	return at
}

// usedUp is after how long a prepayment can be used up at the earliest, at most so
// long. What is due does not fall while all cores are busy, and the least share
// does not rise.
func usedUp(u protocol.BundleUnit, used protocol.Usage, most time.Duration) time.Duration {
	cores := time.Duration(max(1, u.Slot.Cores))
	if used.Wall == 0 {
		used.Share = int64(cores) * protocol.Core
	}
	seconds := sort.Search(int(max(most, 0)/time.Second), func(n int) bool {
		busy := time.Duration(n) * time.Second
		return u.Tariff.MayStop(protocol.Usage{CPU: used.CPU + cores*busy, Wall: used.Wall + busy, Share: used.Share})
	})
	return time.Duration(seconds) * time.Second
}
