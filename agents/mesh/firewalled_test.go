package mesh_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"

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

// introducer is an anchor that meets others at once, and answers with a list of introductions
// when it may; its address.
func introducer(t *testing.T, key *identity.Credential, may <-chan struct{}, hints ...[]byte) string {
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
	list := binary.AppendUvarint(nil, uint64(len(hints)))
	for _, b := range hints {
		list = append(list, b...)
	}
	for id, answer := range map[libp2pprotocol.ID][]byte{mesh.ProtocolPresence: nil, mesh.ProtocolIntroductions: list} {
		h.SetStreamHandler(id, func(s network.Stream) {
			defer s.Close()
			if id == mesh.ProtocolIntroductions {
				<-may
			}
			if _, err := readRawFrame(bufio.NewReader(s)); err == nil {
				_, _ = s.Write(append(frame(cardOf(key)), frame(answer)...)) // the newcomer may have gone
			}
		})
	}
	return h.Addrs()[0].String() + "/p2p/" + h.ID().String()
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
	may := make(chan struct{})
	tell := sync.OnceFunc(func() { close(may) })
	t.Cleanup(tell)
	anchor := introducer(t, m.credential("anchor"), may, hints...)
	newcomer := m.start("newcomer", func(c *mesh.Config) { c.Bootstrap = []string{anchor} })
	ctx, cancel := context.WithTimeout(context.Background(), patience/2) // before an anchor that tells nothing is given up
	defer cancel()
	if err := newcomer.Joined(ctx); err != nil {
		t.Fatal(err)
	}
	tell()
	for _, a := range there {
		newcomer.awaitKnown(a.Self())
	}
}
