package mesh_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/agents/mesh"
	"ramp/protocol/identity"
)

// blackHole is an address that neither accepts nor refuses a connection, like one behind
// a firewall: its queue of connections is full.
func blackHole(t *testing.T) ma.Multiaddr {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := at.(*syscall.SockaddrInet4).Port
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)) // it fills the queue
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	a, err := ma.NewMultiaddr(fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// hint is one introduction on the wire.
func hint(id peer.ID, at ma.Multiaddr) []byte {
	return frame(append(append(frame([]byte(id)), 1), frame(at.Bytes())...))
}

func idOf(t *testing.T, c *identity.Credential) peer.ID {
	t.Helper()
	_, pub, err := crypto.KeyPairFromStdKey(c.PrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// introducer is an anchor that meets others at once, and answers each question for
// introductions with the next of some lists; its address.
func introducer(t *testing.T, key *identity.Credential, lists <-chan [][]byte) string {
	t.Helper()
	sk, _, err := crypto.KeyPairFromStdKey(key.PrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(sk), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics(), libp2p.DisableRelay(),
		libp2p.Transport(tcp.NewTCPTransport), libp2p.Security(noise.ID, noise.New))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, id := range []libp2pprotocol.ID{mesh.ProtocolPresence, mesh.ProtocolIntroductions} {
		h.SetStreamHandler(id, func(s network.Stream) {
			defer s.Close()
			var answer []byte
			if id == mesh.ProtocolIntroductions {
				hints := <-lists
				answer = append(binary.AppendUvarint(nil, uint64(len(hints))), slices.Concat(hints...)...)
			}
			if _, err := readRawFrame(bufio.NewReader(s)); err == nil {
				_, _ = s.Write(append(frame(cardOf(key)), frame(answer)...)) // the newcomer may have gone
			}
		})
	}
	return h.Addrs()[0].String() + "/p2p/" + h.ID().String()
}

// give answers the next question for introductions.
func give(t *testing.T, lists chan<- [][]byte, hints ...[]byte) {
	t.Helper()
	select {
	case lists <- hints:
	case <-time.After(patience):
		t.Fatalf("nobody asked for introductions within %s", patience)
	}
}

// Of 250 agents behind firewalls each costs a dial of 5 s; 32 at a time that would be 40 s,
// longer than a test waits.
// A newcomer has joined when its anchor has answered, before it hears of anybody else, and
// meets those that can be reached without waiting for the others.
func TestFirewalledAgentsDelayNoNewcomer(t *testing.T) {
	m := newMarket(t)
	hole := blackHole(t)
	var hints [][]byte
	for i := range 250 {
		hints = append(hints, hint(idOf(t, m.credential(fmt.Sprint("closed", i))), hole))
	}
	var there []*agent
	for i := range 5 {
		a := m.start(fmt.Sprint("site", i), nil)
		info, err := peer.AddrInfoFromString(a.Addresses()[0])
		if err != nil {
			t.Fatal(err)
		}
		there, hints = append(there, a), append(hints, hint(info.ID, info.Addrs[0]))
	}
	lists := make(chan [][]byte)
	t.Cleanup(func() { close(lists) })
	anchor := introducer(t, m.credential("anchor"), lists)
	newcomer := m.start("newcomer", func(c *mesh.Config) { c.Bootstrap = []string{anchor} })
	ctx, cancel := context.WithTimeout(context.Background(), patience/2) // before an anchor that tells nothing is given up
	defer cancel()
	if err := newcomer.Joined(ctx); err != nil {
		t.Fatal(err)
	}
	give(t, lists, hints...)
	for _, a := range there {
		newcomer.awaitKnown(a.Self())
	}
}

// mute is an address that takes connections and says nothing; they come on the channel.
func mute(t *testing.T) (ma.Multiaddr, <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan net.Conn)
	t.Cleanup(func() {
		_ = l.Close()
		for c := range taken {
			_ = c.Close()
		}
	})
	go func() {
		defer close(taken)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			taken <- c
		}
	}()
	a, err := manet.FromNetAddr(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return a, taken
}

// A site behind NAT is introduced before it has a place with a relay, and again when it has one:
// a newcomer that still tries the first address asks again, and meets the site at the second.
func TestASiteIsMetAtItsNewAddressWhileTheOldOneHangs(t *testing.T) {
	m := newMarket(t)
	site := m.start("site", nil)
	info, err := peer.AddrInfoFromString(site.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	old, taken := mute(t)
	lists := make(chan [][]byte)
	t.Cleanup(func() { close(lists) })
	anchor := introducer(t, m.credential("anchor"), lists)
	newcomer := m.start("newcomer", func(c *mesh.Config) { c.Bootstrap = []string{anchor} })
	give(t, lists, hint(info.ID, old))
	hangs, givenUp := <-taken, make(chan struct{})
	t.Cleanup(func() { _ = hangs.Close(); <-givenUp })
	go func() {
		defer close(givenUp)
		_, _ = io.Copy(io.Discard, hangs)
	}()
	give(t, lists, hint(info.ID, info.Addrs[0]))
	newcomer.awaitKnown(site.Self())
	select {
	case <-givenUp:
		t.Error("the newcomer has waited until the old address failed")
	default:
	}
}

// An agent that is told again and again of agents that are not there begins, before it has
// finished with them, no more dials than one list holds, and none twice.
func TestALyingIntroducerCausesFewDials(t *testing.T) {
	for _, c := range []struct {
		name       string
		hints, say int // of one list, and in all
	}{
		{"others each time", mesh.MaxIntroductions, 3 * mesh.MaxIntroductions},
		{"the same each time", 100, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMarket(t)
			nobody, taken := mute(t)
			key, lists := m.credential("liar"), make(chan [][]byte)
			t.Cleanup(func() { close(lists) })
			anchor := introducer(t, key, lists)
			newcomer := m.start("newcomer", func(c *mesh.Config) { c.Bootstrap = []string{anchor} })
			give(t, lists) // nobody: it will ask again in a minute
			if err := newcomer.Acquainted(t.Context()); err != nil {
				t.Fatal(err)
			}
			var lies [][]byte
			for range c.say {
				lies = append(lies, hint(idOf(t, m.credential("nobody")), nobody))
			}
			unmet := make(chan int, 1)
			go func() {
				n, err := mesh.Learn(t.Context(), newcomer.Mesh, key.ID)
				if err != nil {
					t.Error(err)
				}
				unmet <- n
			}()
			give(t, lists, lies[:c.hints]...)
			hangs := <-taken
			go func() { // the others fail at once
				for c := range taken {
					_ = c.Close()
				}
			}()
			give(t, lists, lies[c.say/2-c.hints/2:][:c.hints]...)
			give(t, lists, lies[c.say-c.hints:]...)
			_ = hangs.Close()
			if n := <-unmet; n == 0 || n > c.hints {
				t.Errorf("%d dials failed, want at most %d", n, c.hints)
			}
		})
	}
}
