package mesh_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"ramp/agents/mesh"
	"ramp/protocol/identity"
)

// raw is a peer that speaks the wire by itself, and not as it should.
type raw struct {
	host.Host
	t      testing.TB
	victim peer.ID
}

// newRaw connects a raw peer with a key of its own to an agent.
func newRaw(t testing.TB, key *identity.Credential, victim *agent, before ...func(host.Host)) *raw {
	t.Helper()
	sk, _, err := crypto.KeyPairFromStdKey(key.PrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(sk), libp2p.NoListenAddrs, libp2p.DisableMetrics(), libp2p.DisableRelay(),
		libp2p.Transport(tcp.NewTCPTransport), libp2p.Security(noise.ID, noise.New), libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	info, err := peer.AddrInfoFromString(victim.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, prepare := range before {
		prepare(h)
	}
	r := &raw{h, t, info.ID}
	if err := h.Connect(context.Background(), *info); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *raw) open(id libp2pprotocol.ID) network.Stream {
	r.t.Helper()
	s, err := r.NewStream(context.Background(), r.victim, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// greeted opens a stream of messages on which cards were exchanged.
func (r *raw) greeted(key *identity.Credential) network.Stream {
	r.t.Helper()
	s := r.open(mesh.ProtocolACL)
	r.write(s, frame(cardOf(key)))
	if _, err := readRawFrame(bufio.NewReader(s)); err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *raw) write(s network.Stream, b []byte) {
	r.t.Helper()
	if _, err := s.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// awaitCutOff waits until the victim has hung up and does not take the peer back.
func (r *raw) awaitCutOff() {
	r.t.Helper()
	eventually(r.t, "the peer is cut off", func() bool { return r.Network().Connectedness(r.victim) != network.Connected })
	if s, err := r.NewStream(context.Background(), r.victim, mesh.ProtocolACL); err == nil {
		// The dialer is told only afterwards that it was not let in.
		_, _ = s.Write(frame(nil))
		if _, err := readRawFrame(bufio.NewReader(s)); err == nil {
			r.t.Error("a peer that was cut off came back at once")
		}
	}
}

// frame, card: the wire, written here a second time.
func frame(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

func cardOf(c *identity.Credential) []byte {
	b := binary.AppendUvarint(nil, uint64(len(c.Chain)))
	for _, der := range c.ChainDER() {
		b = append(b, frame(der)...)
	}
	return append(b, 0) // no addresses
}

func readRawFrame(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}
