package wan

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// No packet of a link overtakes another or comes before its delay, whatever the
// jitter and the changes of the link; and none is later than jitter allows.
func TestALinkKeepsItsOrderAndItsDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOutlet(2, Link{}, rapid.Uint64().Draw(t, "seed"), 0)
		now := time.Unix(0, 0)
		var last, latest time.Time
		for range rapid.IntRange(1, 50).Draw(t, "packets") {
			l := Link{
				Delay:  time.Duration(rapid.IntRange(0, 50).Draw(t, "delay")) * time.Millisecond,
				Jitter: time.Duration(rapid.IntRange(0, 50).Draw(t, "jitter")) * time.Millisecond,
			}
			o.change(1, func(old *Link) { *old = l })
			now = now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "pause")) * time.Millisecond)
			what, due := o.fate(now, 1)
			if most := now.Add(l.Delay + l.Jitter); most.After(latest) {
				latest = most
			}
			if what != arrives || due.Before(last) || due.Before(now.Add(l.Delay)) || due.After(latest) {
				t.Fatalf("%d: due %s after %s, now %s, latest %s", what, due, last, now, latest)
			}
			last = due
		}
	})
}

func TestAnInboxIsBoundedAndInOrder(t *testing.T) {
	b := newInbox()
	base := time.Unix(1000, 0)
	for i := range MaxQueued {
		if !b.put(base.Add(time.Duration((i*7919)%MaxQueued)*time.Millisecond), []byte{byte(i)}) {
			t.Fatalf("no room for packet %d", i)
		}
	}
	if b.put(base, nil) {
		t.Error("one more than the bound was taken")
	}
	if _, wait := b.take(base.Add(-time.Second)); wait != time.Second {
		t.Errorf("the first is due in %s, want 1s", wait)
	}
	for i := range MaxQueued {
		now := base.Add(time.Duration(i) * time.Millisecond)
		if bytes, _ := b.take(now); bytes == nil {
			t.Fatalf("nothing is due at %s", now)
		}
		if bytes, wait := b.take(now); bytes != nil || i+1 < MaxQueued && wait != time.Millisecond {
			t.Fatalf("at %s another is due, or the next in %s", now, wait)
		}
	}
	if _, wait := b.take(base); wait >= 0 {
		t.Errorf("an empty inbox is due in %s", wait)
	}
}
