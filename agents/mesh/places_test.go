package mesh

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// silentConn is a connection from an address.
type silentConn struct {
	network.ConnMultiaddrs
	from ma.Multiaddr
}

func (c *silentConn) RemoteMultiaddr() ma.Multiaddr { return c.from }

// losesPlace returns the address that loses a place after arrivals; known agents have
// been at the trusted ones.
func losesPlace(arrivals, trusted []ma.Multiaddr) ma.Multiaddr {
	s := &strangers{}
	for _, a := range trusted {
		s.trusted = append(s.trusted, originOf(a))
	}
	for _, a := range arrivals {
		s.arrive(&silentConn{from: a})
	}
	return s.crowdedOut(len(arrivals)-1, func(*stranger) bool { return true }).conn.RemoteMultiaddr()
}

func TestWhoLosesAPlace(t *testing.T) {
	const a, b, c = "/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.2/tcp/1", "/ip4/192.0.2.3/tcp/1"
	const six, seven, other = "/ip6/2001:db8:1:1::6/tcp/1", "/ip6/2001:db8:1:ff02::7/tcp/1", "/ip6/2001:db8:2::1/tcp/1"
	for name, x := range map[string]struct {
		arrivals, trusted []string
		want              string
	}{
		"the oldest": {[]string{a, b, c}, nil, a},
		"the oldest of the address with the most":  {[]string{a, b, c, b, c, c}, nil, c},
		"none where a known agent has been":        {[]string{a, a, b}, []string{a}, b},
		"unless there is no other":                 {[]string{a, b, b}, []string{a, b}, b},
		"an IPv6 network of 48 bits counts as one": {[]string{other, six, a, seven}, nil, six},
	} {
		t.Run(name, func(t *testing.T) {
			if got := losesPlace(parsed(t, x.arrivals), parsed(t, x.trusted)); got.String() != x.want {
				t.Errorf("%s loses its place, want %s", got, x.want)
			}
		})
	}
}

func parsed(t *testing.T, list []string) (all []ma.Multiaddr) {
	for _, s := range list {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// One customer may have a whole IPv6 network: of 56 bits, or of 48.
func TestAnIPv6NetworkHasOneAllowance(t *testing.T) {
	for network, most := range map[string]int{"2001:db8:1:1::%x": 64, "2001:db8:1:%x::1": 96, "2001:db8:1:%x00::1": 128} {
		enrol, now, n := newEnrolment(nil), time.Now(), 0
		for i := range 256 {
			a := parsed(t, []string{"/ip6/" + fmt.Sprintf(network, i) + "/tcp/1"})[0]
			if enrol.admit(networksOf(a), now) {
				n++
			}
		}
		if n != most {
			t.Errorf("%s: %d requests admitted, want %d", network, n, most)
		}
	}
}
