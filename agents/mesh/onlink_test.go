package mesh

import (
	"fmt"
	"net"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

func networks(t *testing.T, all ...string) (list []net.IPNet) {
	for _, s := range all {
		_, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, *n)
	}
	return list
}

func TestOnlyAddressesOfTheOwnNetworksAreVisited(t *testing.T) {
	here := networks(t, "192.0.2.0/24", "127.0.0.0/8", "fd00::/64")
	for a, want := range map[string]bool{
		"/ip4/192.0.2.7/tcp/4101":         true,
		"/ip4/127.0.0.1/tcp/4101":         true,
		"/ip6/fd00::7/tcp/4101":           true,
		"/ip4/192.0.3.7/tcp/4101":         false,
		"/ip4/192.0.2.7/udp/4101/quic-v1": false,
		"/dns4/printer.local/tcp/4101":    false,
	} {
		if got := onLink(ma.StringCast(a), here); got != want {
			t.Errorf("%s: visited %t, want %t", a, got, want)
		}
	}
}

func TestWhoIsNearIsRememberedUpToABound(t *testing.T) {
	here, known := networks(t, "192.0.2.0/24"), map[peer.ID]*neighbour{}
	info := func(n int) peer.AddrInfo {
		return peer.AddrInfo{ID: peer.ID(fmt.Sprint(n)), Addrs: []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.7/tcp/4101")}}
	}
	for n := range 2 * maxNearby {
		if _, ok := remember(known, info(n), here); ok != (n < maxNearby) {
			t.Fatalf("%d: remembered %t", n, ok)
		}
	}
	if _, ok := remember(known, info(0), here); !ok {
		t.Error("one who is known is not heard any more")
	}
}
