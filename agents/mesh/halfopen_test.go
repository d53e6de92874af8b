package mesh

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

// accepted is a connection that has just been accepted.
type accepted struct {
	from   ma.Multiaddr
	closed bool
}

func (a *accepted) LocalMultiaddr() ma.Multiaddr  { return a.from }
func (a *accepted) RemoteMultiaddr() ma.Multiaddr { return a.from }
func (a *accepted) Close() error                  { a.closed = true; return nil }

// Of a crowd of one network that asks for ever more handshakes, those that have begun go
// on, and the others are refused before theirs. Silent ones do not keep their places, and a
// newcomer from elsewhere always gets one.
func TestStrangersFinishTheHandshakesThatTheyHaveBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGate(time.Now).strangers
		from := func(address string) *accepted {
			return &accepted{from: ma.StringCast(fmt.Sprintf("/ip4/%s/tcp/4101", address))}
		}
		dropped := func(list []*accepted) (n int) {
			for _, c := range list {
				if c.closed {
					n++
				}
			}
			return n
		}
		var crowd []*accepted
		refused := 0
		for range 3 * maxHalfOpen {
			c := from("192.0.2.1")
			if crowd = append(crowd, c); !s.arrive(c) {
				refused++
			}
		}
		if refused != 2*maxHalfOpen || dropped(crowd) != 0 {
			t.Errorf("%d refused and %d dropped of a crowd that comes at once, want %d and 0", refused, dropped(crowd), 2*maxHalfOpen)
		}
		if newcomer := from("198.51.100.7"); !s.arrive(newcomer) || newcomer.closed || dropped(crowd) != 1 {
			t.Errorf("a newcomer from elsewhere: %d of the crowd dropped, want 1", dropped(crowd))
		}
		time.Sleep(strangerTenure) // of virtual time
		if late := from("192.0.2.1"); !s.arrive(late) || dropped(crowd) != 2 {
			t.Errorf("one that comes after %s: %d of the silent crowd dropped, want 2", strangerTenure, dropped(crowd))
		}
		time.Sleep(handshakeTime + time.Second) // of virtual time
		if last := from("192.0.2.1"); !s.arrive(last) || len(s.waiting) != 1 {
			t.Errorf("%d handshakes go on after %s, want the last one only", len(s.waiting), handshakeTime)
		}
	})
}
