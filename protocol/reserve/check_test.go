package reserve_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/reserve"
)

// run is a job second by second: the micro-cores that it used, and its share.
type run struct {
	busy, share []int64
}

// used returns the usage after so many seconds.
func (r run) used(seconds int) protocol.Usage {
	u := protocol.Usage{Wall: time.Duration(seconds) * time.Second, Share: r.share[0]}
	for i := range seconds {
		u.CPU += time.Duration(r.busy[i]) * time.Second / protocol.Core
		u.Share = min(u.Share, r.share[i])
	}
	return u
}

// The seller checks on any job in the second in which its contract first allows to stop
// it, and in few others.
func TestAPrepaidJobIsStoppedWhenItsPrepaymentIsUsedUp(t *testing.T) {
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		cores, seconds := rapid.IntRange(1, 8).Draw(t, "cores"), rapid.IntRange(5, 400).Draw(t, "seconds")
		most := int64(cores) * protocol.Core
		ramp := func(name string) protocol.Ramp {
			lo := rapid.Int64Range(0, most).Draw(t, name+" lo")
			return protocol.Ramp{Lo: lo, Hi: rapid.Int64Range(lo, 2*most).Draw(t, name+" hi"), Top: protocol.Credits(rapid.Int64Range(0, 1<<34).Draw(t, name+" top"))}
		}
		u := protocol.BundleUnit{
			Slot:   protocol.Slot{Start: start, End: start.Add(time.Duration(seconds) * time.Second), Cores: cores},
			Tariff: protocol.Tariff{TimeLimit: time.Duration(rapid.IntRange(1, seconds).Draw(t, "limit")) * time.Second, P: ramp("P"), Q: ramp("Q")},
		}
		if rapid.Bool().Draw(t, "prepaid") {
			u.Tariff.Prepay = protocol.Credits(rapid.Int64Range(1, 1<<28).Draw(t, "prepay"))
		}
		r := run{}
		for range seconds + 2 {
			r.busy = append(r.busy, rapid.SampledFrom([]int64{0, most / 3, most, most}).Draw(t, "busy"))
			r.share = append(r.share, rapid.SampledFrom([]int64{most, most, most, most / 2}).Draw(t, "share"))
		}
		may := 0 // the first second at which it may be stopped, by looking at each
		for may < seconds && !u.Tariff.MayStop(r.used(may)) {
			may++
		}
		looks, at := 0, reserve.NextCheck(u, protocol.Usage{}, start)
		for ; at.Before(u.Slot.End); looks++ {
			n := int(at.Sub(start) / time.Second)
			if u.Tariff.MayStop(r.used(n)) {
				break
			}
			next := reserve.NextCheck(u, r.used(n), at)
			if !next.After(at) {
				t.Fatalf("looked at %s, and again at %s", at, next)
			}
			at = next
		}
		if got := int(at.Sub(start) / time.Second); got != may && may < seconds {
			t.Fatalf("it may be stopped after %d s, and is looked at after %d s and %d looks", may, got, looks)
		}
	})
}

// The seller checks once on a job that keeps its cores busy, and at most once a second
// on a job with pauses.
func TestASellerChecksAJobSeldom(t *testing.T) {
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	u := protocol.BundleUnit{
		Slot:   protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 2},
		Tariff: protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Top: 36 * protocol.Credit}, Prepay: 12 * protocol.Credit}, // ten minutes of two cores
	}
	first := reserve.NextCheck(u, protocol.Usage{}, start)
	if want := start.Add(10 * time.Minute); !first.Equal(want) {
		t.Fatalf("first looked at %s, want %s", first, want)
	}
	idle := protocol.Usage{CPU: 18 * time.Minute, Wall: 10 * time.Minute, Share: 2 * protocol.Core}
	if got, want := reserve.NextCheck(u, idle, first), first.Add(time.Minute); !got.Equal(want) {
		t.Fatalf("then at %s, want %s", got, want)
	}
	idle.CPU = 20*time.Minute - time.Millisecond
	if got, want := reserve.NextCheck(u, idle, first), first.Add(time.Second); !got.Equal(want) {
		t.Fatalf("at last at %s, want %s", got, want)
	}
	u.Tariff.Prepay = 0
	if got := reserve.NextCheck(u, idle, first); !got.Equal(start.Add(time.Hour)) {
		t.Fatalf("without a prepayment at %s, want the end", got)
	}
}
