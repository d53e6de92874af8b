package mesh

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/identity"
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

// A key that comes under another name has no new allowances.
func TestAnotherNameInheritsWhatItsPeerHasSpent(t *testing.T) {
	cs, now, l := newContacts(nil), time.Unix(1, 0), DefaultLimits()
	meet := func(agent protocol.AgentID) *contact {
		c, err := cs.add(agent, issuer{}, "peer", card{chain: [][]byte{{1}}}, now)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a := meet("a@key")
	if !a.spend(&a.streams, l.Streams.Burst, now, l.Streams) || !a.admitGossip(topicCalls, 7, 1, now, l) {
		t.Fatal("it has no allowance")
	}
	for a.connects("site", now) {
	}
	if b := meet("b@key"); b.charge(&b.streams, now, l.Streams) || b.admitGossip(topicCalls, 7, 1, now, l) || !b.admitGossip(topicCalls, 8, 1, now, l) || b.connects("site", now) {
		t.Error("another name has allowances of its own")
	}
}

// Gossip may be old: it changes neither the addresses nor the name of an agent that has shown a later
// certificate.
func TestOldGossipReplacesNothing(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	ca, err := identity.NewCA("authority", now, 24*time.Hour, rand.Reader)
	check(err)
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	check(err)
	key, err := identity.NewKey(rand.Reader)
	check(err)
	cardOf := func(name string, issued time.Time, addr string) []byte {
		cert, err := ca.Issue(name, key.Public(), issued, time.Hour)
		check(err)
		block, _ := pem.Decode(cert)
		a, err := ma.NewMultiaddr(addr)
		check(err)
		return card{chain: [][]byte{block.Bytes}, addrs: []ma.Multiaddr{a}}.encode()
	}
	leaf, err := ca.Issue("x", key.Public(), now, time.Hour)
	check(err)
	block, _ := pem.Decode(leaf)
	cert, err := x509.ParseCertificate(block.Bytes)
	check(err)
	id, err := peerOf(cert)
	check(err)
	e := &endpoint{cfg: Config{Trust: trust, Now: time.Now}, contacts: newContacts(nil)}
	const here, there = "/ip4/192.0.2.1/tcp/1", "/ip4/192.0.2.2/tcp/1"
	for i, step := range []struct {
		card     []byte
		gossiped bool
		name     string // "": refused
		at       string
	}{
		{cardOf("one", now, here), true, "one", here},
		{cardOf("one", now, there), true, "one", here},
		{cardOf("one", now, there), false, "one", there},
		{cardOf("two", now.Add(time.Minute), here), true, "two", here},
		{cardOf("one", now, there), true, "", ""},
		{cardOf("two", now.Add(2*time.Minute), there), true, "two", there},
		{cardOf("one", now, here), false, "one", here}, // it says so itself
	} {
		c, err := e.verify(id, step.card, step.gossiped)
		switch {
		case step.name == "":
			if err == nil || isFault(err) {
				t.Errorf("step %d: %v", i, err)
			}
		case err != nil:
			t.Fatalf("step %d: %v", i, err)
		case c.agent.Name() != step.name || c.current().addrs[0].String() != step.at:
			t.Errorf("step %d: %s at %s, want %s at %s", i, c.agent, c.current().addrs, step.name, step.at)
		}
	}
}

// One agent does not take all circuits of a site that a relay brings.
func TestNobodyTakesAllCircuitsOfAnother(t *testing.T) {
	c, now := newContact("a@key", issuer{}, "peer"), time.Unix(1, 0)
	open := 0
	for range 2 * relayCircuits {
		if c.connects("site", now) {
			open++
		}
	}
	if open != relayCircuits/2 || !c.connects("other", now) || !c.connects("site", now.Add(2*time.Second)) || c.connects("site", now.Add(2*time.Second)) {
		t.Errorf("%d circuits at once", open)
	}
}

// What an agent says of its addresses is passed on, kept in a file and printed.
func TestOnlyPlainAddressesAreBelieved(t *testing.T) {
	const id = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
	relay := "/p2p/" + id + "/p2p-circuit"
	for _, c := range []struct {
		address string
		good    bool
	}{
		{"/ip4/203.0.113.7/tcp/4101", true},
		{"/ip6/2001:db8::1/udp/4101/quic-v1", true},
		{"/ip6zone/eth0/ip6/fe80::1/tcp/4101", true},
		{"/ip6/::ffff:192.0.2.1/tcp/1/p2p/" + id, true},
		{"/dns4/site-1.example/tcp/4101" + relay, true},
		{"/dns/site.example/tcp/4101" + relay + "/p2p/" + id, true},
		{"/dns6/" + strings.Repeat("x", maxAddress) + ".example/tcp/1", false},
		{"/ip4/127.0.0.1/tcp/1/unix/x\n/ip4/203.0.113.7/tcp/99/p2p/" + id, false},
		{"/unix/run/tcp/1", false},
		{"/dns4/site.example\n/tcp/1", false},
		{"/dns4/\x1b[2J/tcp/1", false},
		{"/dns4/a b/tcp/1", false},
		{"/dnsaddr/site.example/tcp/1", false},
		{"/ip4/203.0.113.7/udp/1", false},
		{"/ip4/203.0.113.7/tcp/1/ws", false},
	} {
		a, err := ma.NewMultiaddr(c.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(dialable([][]byte{a.Bytes()})) == 1; got != c.good {
			t.Errorf("%q: believed %v, want %v", c.address, got, c.good)
		}
	}
}

func TestAFullAnswerOfIntroductionsFits(t *testing.T) {
	name := strings.Repeat("x", maxAddress-len("/dns4//tcp/1"))
	a := ma.StringCast("/dns4/" + name + "/tcp/1").Bytes()
	full := introduction{id: "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"}
	for range MaxAddresses {
		full.addrs = append(full.addrs, a)
	}
	if got := dialable(full.addrs); len(got) != MaxAddresses {
		t.Fatalf("%d addresses of %d bytes are believed", len(got), len(a))
	}
	if got := len(encodeIntroductions(slices.Repeat([]introduction{full}, MaxIntroductions))); got > maxIntroBytes {
		t.Errorf("%d introductions take %d bytes, readers take %d", MaxIntroductions, got, maxIntroBytes)
	}
}
