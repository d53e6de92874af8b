package auction

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"ramp/protocol"
)

// window bounds the start of a unit's slot. If no start is possible, note explains why.
type window struct {
	earliest, latest time.Time
	wall             time.Duration
	note             string
}

// window reads a request's times (002 §5.2). It begins at the requested start, but not
// before Lead from now, unless the request is too tight for Lead. In the best-offer
// round the end does not bind.
func (s *Seller) window(now time.Time, u *sellerUnit, best bool) (window, bool) {
	r := u.request
	horizon := now.Add(s.cfg.Horizon - r.Wall)
	w := window{latest: r.End.Add(-r.Wall), wall: r.Wall}
	if best {
		w.latest = horizon
	}
	w.earliest = protocol.Later(r.NotBefore, protocol.Earlier(second(now.Add(s.cfg.Lead)), w.latest))
	w.earliest = protocol.Later(w.earliest, s.start)
	switch {
	case s.tooLong(r.Wall):
		return window{note: "the slot is too long, jobs may last " + s.cfg.Longest.String() + " there"}, false
	case w.latest.Before(w.earliest) || !w.earliest.After(now):
		return window{note: "the last start is over"}, false
	case w.earliest.After(horizon):
		return window{note: "the slot is too far ahead, it must end within " + s.cfg.Horizon.String()}, false
	}
	w.latest = protocol.Earlier(w.latest, horizon)
	return w, true
}

func (s *Seller) tooLong(wall time.Duration) bool { return s.cfg.Longest > 0 && wall > s.cfg.Longest }

// second rounds t up to a whole second: batch systems count in seconds.
func second(t time.Time) time.Time {
	if down := t.Truncate(time.Second); !down.Equal(t) {
		return down.Add(time.Second)
	}
	return t
}

// documentHash is the hex SHA-256 of a document, as in a bundle.
func documentHash(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:])
}
