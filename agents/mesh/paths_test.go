package mesh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	"pgregory.net/rapid"
)

// An agent says at most MaxAddresses of its addresses: public ones before relays', those
// before local ones.
func TestTheMostUsefulAddressesAreSaid(t *testing.T) {
	kinds := []string{"/ip4/140.88.0.%d/tcp/1", "/ip4/140.88.0.%d/tcp/1/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N/p2p-circuit", "/ip4/192.168.0.%d/udp/1/quic-v1"}
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 20).Draw(t, "kinds")
		var all []ma.Multiaddr
		for i, k := range drawn {
			all = append(all, ma.StringCast(fmt.Sprintf(kinds[k], i)))
		}
		got := mostUseful(all)
		want := slices.Clone(drawn)
		slices.Sort(want)
		want = want[:min(len(want), MaxAddresses)]
		if len(got) != len(want) {
			t.Fatalf("%d of %d", len(got), len(all))
		}
		for i, a := range got {
			if j := slices.IndexFunc(all, a.Equal); j < 0 || drawn[j] != want[i] {
				t.Fatalf("%d: %s, of kind %d wanted", i, a, want[i])
			}
		}
	})
}

// QUIC is listened for beside TCP, and by agents that listen on loopback but join others.
func TestQUICIsBesideTCP(t *testing.T) {
	const peerID = "/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
	for _, c := range []struct{ listen, join, want string }{
		{"/ip4/0.0.0.0/tcp/4101", "", "/ip4/0.0.0.0/udp/4101/quic-v1"},
		{"/ip6/::/tcp/4101", "", "/ip6/::/udp/4101/quic-v1"},
		{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/1", ""},
		{"/ip4/127.0.0.1/tcp/0", "/dns4/bank.example/tcp/1", "/ip4/0.0.0.0/udp/0/quic-v1"},
		{"/ip4/127.0.0.1/tcp/0", "/ip6/2001:db8::1/tcp/1", "/ip6/::/udp/0/quic-v1"},
	} {
		var join []string
		if c.join != "" {
			join = []string{c.join + peerID}
		}
		at, err := Config{Listen: []string{c.listen}, Bootstrap: join}.parse()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(texts(listenQUIC(at)), " "); got != c.want {
			t.Errorf("listening at %s, joining %s: %q, want %q", c.listen, c.join, got, c.want)
		}
	}
}

// Newcomers also try QUIC where an invitation names TCP only: over it others see the address to
// which paths are punched.
func TestAgentsJoinOverQUICToo(t *testing.T) {
	const peerID = "/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
	for _, c := range []struct{ join, want string }{
		{"/ip4/140.88.0.1/tcp/4101", "/ip4/140.88.0.1/tcp/4101 /ip4/140.88.0.1/udp/4101/quic-v1"},
		{"/dns4/bank.example/tcp/1", "/dns4/bank.example/tcp/1 /dns4/bank.example/udp/1/quic-v1"},
		{"/ip4/140.88.0.1/udp/4101/quic-v1", "/ip4/140.88.0.1/udp/4101/quic-v1"},
		{"/ip4/127.0.0.1/tcp/4101", "/ip4/127.0.0.1/tcp/4101"},
		{"/ip4/140.88.0.1/tcp/4101" + peerID + "/p2p-circuit", "/ip4/140.88.0.1/tcp/4101" + peerID + "/p2p-circuit"},
	} {
		at, err := Config{Bootstrap: []string{c.join + peerID}}.parse()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(texts(at.bootstrap[0].Addrs), " "); got != c.want {
			t.Errorf("joining %s: dials %q, want %q", c.join, got, c.want)
		}
	}
}

// Where UDP is blocked, TCP connects almost as soon as without QUIC. Local networks prefer TCP.
func TestNobodyWaitsForQUIC(t *testing.T) {
	for _, c := range []struct {
		at         string
		quic, most time.Duration // the least delay of QUIC, and the most of TCP
	}{
		{"140.88.0.1", 0, headStart},
		{"192.168.0.1", 1, 0},
	} {
		tcp, quic := ma.StringCast("/ip4/"+c.at+"/tcp/4101"), ma.StringCast("/ip4/"+c.at+"/udp/4101/quic-v1")
		list := rank([]ma.Multiaddr{tcp, quic})
		if len(list) != 2 {
			t.Fatalf("%s: %d dials, want 2", c.at, len(list))
		}
		for _, d := range list {
			if d.Addr.Equal(tcp) && d.Delay > c.most || d.Addr.Equal(quic) && d.Delay < c.quic {
				t.Errorf("%s is dialled after %s", d.Addr, d.Delay)
			}
		}
	}
}

// However many addresses there are, TCP begins soon after QUIC, and without QUIC as in the library.
func TestTCPWaitsOnceForAllOfQUIC(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"/ip4/140.88.0.1/tcp/1 /ip4/140.88.0.1/udp/1/quic-v1 /ip6/2a01::1/tcp/1 /ip6/2a01::1/udp/1/quic-v1": headStart,
		"/ip4/140.88.0.1/tcp/1 /ip6/2a01::1/tcp/1":                                                          0,
	} {
		var addrs []ma.Multiaddr
		for a := range strings.FieldsSeq(text) {
			addrs = append(addrs, ma.StringCast(a))
		}
		var delays []time.Duration
		for _, d := range rank(addrs) {
			if has(d.Addr, ma.P_TCP) {
				delays = append(delays, d.Delay)
			}
		}
		if len(delays) != 2 || delays[0] != want || delays[1] != want+swarm.PublicTCPDelay {
			t.Errorf("%s: TCP begins after %s", text, delays)
		}
	}
	for _, s := range []string{"/ip4/140.88.0.1/tcp/443/ws", "/ip6zone/eth0/ip6/fe80::1/tcp/4101", "/ip4/127.0.0.1/tcp/1"} {
		if got := besideTCP([]ma.Multiaddr{ma.StringCast(s)}); len(got) != 0 {
			t.Errorf("%s has %s beside it", s, got)
		}
	}
}
