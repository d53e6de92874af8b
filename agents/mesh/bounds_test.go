package mesh

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNoSequenceNumberIsAdmittedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		seen, highest := map[uint64]bool{}, uint64(0)
		base := rapid.Uint64Range(0, 1<<63).Draw(t, "base")
		for range rapid.IntRange(1, 300).Draw(t, "length") {
			n := base + rapid.Uint64Range(0, 3*replayWindow).Draw(t, "n")
			want := n != 0 && !seen[n] && n+replayWindow > highest
			if got := w.admit(n); got != want {
				t.Fatalf("admit %d after highest %d: %v, want %v", n, highest, got, want)
			}
			seen[n], highest = true, max(highest, n)
		}
	})
}

func TestAnAllowanceIsItsBurstAndThenItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{PerSecond: rapid.Float64Range(1, 1000).Draw(t, "rate"), Burst: rapid.Float64Range(1, 1000).Draw(t, "burst")}
		var b bucket
		start := time.Unix(1_000_000, 0)
		now, taken := start, 0.0
		for range rapid.IntRange(1, 500).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "pause")))
			if b.take(now, 1, r) {
				taken++
			}
			if most := r.Burst + now.Sub(start).Seconds()*r.PerSecond; taken > most+1e-6 {
				t.Fatalf("%g taken after %s, want at most %g", taken, now.Sub(start), most)
			}
		}
		if taken == 0 {
			t.Fatal("nothing was taken from a full allowance")
		}
	})
}

// A site that is stopped takes a connection and never says who it is.
func TestAnAgentThatIsSilentIsSaidToBe(t *testing.T) {
	if got := silence(os.ErrDeadlineExceeded); !strings.Contains(got.Error(), "it does not answer within 20s") {
		t.Errorf("%v", got)
	}
	if got := silence(io.ErrUnexpectedEOF); !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("%v", got)
	}
}

// The credentials of connected agents are verified again while others are being added.
func TestEveryContactHasShownItsCertificate(t *testing.T) {
	const many = 20_000
	cs, added := newContacts(nil), make(chan struct{})
	go func() {
		defer close(added)
		for range many {
			if _, err := cs.add("seller@key", issuer{}, "peer", card{chain: [][]byte{{1}}}, time.Now()); err != nil {
				t.Error(err)
			}
			cs.retain(func(*contact) bool { return false })
		}
	}()
	for seen := 0; !isClosed(added); {
		if c := cs.ofPeer("peer"); c != nil && len(c.current().chain) == 0 {
			t.Fatalf("the contact seen as number %d has none", seen)
		} else if c != nil {
			seen++
		}
	}
}
