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

func TestNeighboursAreRememberedUpToABound(t *testing.T) {
	here, n := networks(t, "192.0.2.0/24"), neighbours{known: map[peer.ID]*neighbour{}}
	info := func(n int) peer.AddrInfo {
		return peer.AddrInfo{ID: peer.ID(fmt.Sprint(n)), Addrs: []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.7/tcp/4101")}}
	}
	for i := range 2 * maxNearby {
		if ok := n.remember(info(i), here); ok != (i < maxNearby) {
			t.Fatalf("%d: remembered %t", i, ok)
		}
	}
	if !n.remember(info(0), here) {
		t.Error("a known neighbour cannot be updated")
	}
}
