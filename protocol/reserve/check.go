package reserve

import (
	"sort"
	"time"

	"ramp/protocol"
)

// leastCheck separates two checks on a job that the seller may soon stop. A job may
// overrun its contract by this much.
const leastCheck = time.Second

// nextCheck returns when to check on a running slot again, given its usage so far:
// at its end, or when the seller may first stop it (001) if all its cores were busy
// from now on. A job that used less is checked again then.
func nextCheck(u protocol.BundleUnit, used protocol.Usage, now time.Time) time.Time {
	at := u.Slot.End
	if u.Tariff.TimeLimit > 0 {
		at = protocol.Earlier(at, now.Add(u.Tariff.TimeLimit-used.Wall))
	}
	if u.Tariff.Prepay > 0 {
		at = protocol.Earlier(at, now.Add(usedUp(u, used, u.Slot.End.Sub(now))))
	}
	if soon := now.Add(leastCheck); at.Before(soon) && now.After(u.Slot.Start) {
		at = soon
	}
	return at
}

// usedUp returns how long a prepayment lasts at least, up to most. The search is valid because the
// amount due never falls while all cores are busy, and the least share never rises.
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
