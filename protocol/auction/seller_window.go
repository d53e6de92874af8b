package auction

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// window is when a unit's slot may start, and for how long it runs. If there is
// none, note says why.
type window struct {
	earliest, latest time.Time
	wall             time.Duration
	note             string
}

// window reads a request's times (002 §5.2). Without a start it begins Lead
// from now, and so it does if its start is over or nearer than that; but a
// request that leaves no room for Lead is taken as it is. In the best-offer round
// the end does not bind.
func (s *Seller) window(now time.Time, u *sellerUnit, best bool) (window, bool) {
	r := u.request
	horizon := now.Add(s.cfg.Horizon - r.Wall)
	w := window{latest: r.End.Add(-r.Wall), wall: r.Wall}
	if best {
		w.latest = horizon
	}
	w.earliest = later(r.NotBefore, earlier(second(now.Add(s.cfg.Lead)), w.latest))
	switch {
	case s.tooLong(r.Wall):
		return window{note: "the slot is too long, jobs may last " + s.cfg.Longest.String() + " there"}, false
	case w.latest.Before(w.earliest) || !w.earliest.After(now):
		return window{note: "the last start is over"}, false
	case w.earliest.After(horizon):
		return window{note: "the slot is too far ahead, it must end within " + s.cfg.Horizon.String()}, false
	}
	w.latest = earlier(w.latest, horizon)
	return w, true
}

// tooLong reports whether no job there may last so long.
func (s *Seller) tooLong(wall time.Duration) bool { return s.cfg.Longest > 0 && wall > s.cfg.Longest }

// second is t, or the next whole second: batch systems count in seconds.
func second(t time.Time) time.Time {
	if down := t.Truncate(time.Second); !down.Equal(t) {
		return down.Add(time.Second)
	}
	return t
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// documentHash is how a bundle names the document: hex SHA-256 of its bytes.
func documentHash(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}
