package mesh_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
)

// gossiper is a raw peer in the topic of calls.
type gossiper struct {
	*raw
	topic *pubsub.Topic
}

func newGossiper(t *testing.T, key *identity.Credential, victim *agent) gossiper {
	t.Helper()
	r := newRaw(t, key, victim)
	r.greeted(key) // a gossiper with a credential of its own
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ps, err := pubsub.NewGossipSub(ctx, r.Host)
	if err != nil {
		t.Fatal(err)
	}
	topic, err := ps.Join("ramp/cfp/1")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim hears the topic", func() bool { return len(topic.ListPeers()) > 0 })
	return gossiper{r, topic}
}

func (g gossiper) publish(data []byte) {
	g.t.Helper()
	if err := g.topic.Publish(context.Background(), data); err != nil {
		g.t.Fatal(err)
	}
}

func hearsCalls(c *mesh.Config) { c.HearCalls = true }

func encodedCall(t *testing.T, conversation string) []byte {
	t.Helper()
	m := callForProposals()
	m.Conversation = conversation
	b, err := codec.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGossipCountsOnlyWithTheAuthorsOwnCard(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	mallory, alice, foreign := m.credential("mallory"), m.credential("alice"), other.credential("mallory")
	victim := m.start("victim", hearsCalls)
	g := newGossiper(t, mallory, victim)
	call := frame(encodedCall(t, "forged"))
	for _, forged := range [][]byte{
		append(frame(cardOf(alice)), call...),   // another agent's name
		append(frame(cardOf(foreign)), call...), // an authority that is not trusted
		append(frame(nil), call...),
		[]byte("hello"),
		append(append(frame(cardOf(mallory)), call...), 0), // a byte too many
	} {
		g.publish(forged)
	}
	g.publish(append(frame(cardOf(mallory)), frame(encodedCall(t, "honest"))...))
	got := victim.await("a call", func(m protocol.Message) bool { return m.Performative == protocol.CFP })
	if got.Conversation != "honest" || got.Sender != mallory.ID {
		t.Errorf("got %+v", got)
	}
}

func TestWhoPassesOnInvalidGossipIsCutOff(t *testing.T) {
	m := newMarket(t)
	mallory, alice := m.credential("mallory"), m.credential("alice")
	victim := m.start("victim", hearsCalls)
	g := newGossiper(t, mallory, victim)
	for range 100 {
		g.publish(append(frame(cardOf(alice)), frame(encodedCall(t, "forged"))...))
	}
	g.awaitCutOff()
}

func TestOneAuthorsGossipIsBounded(t *testing.T) {
	m := newMarket(t)
	mallory := m.credential("mallory")
	victim := m.start("victim", func(c *mesh.Config) {
		hearsCalls(c)
		c.Limits = mesh.DefaultLimits()
		c.Limits.Gossip = mesh.Rate{PerSecond: 0.001, Burst: 10}
	})
	g := newGossiper(t, mallory, victim)
	for range 200 {
		g.publish(append(frame(cardOf(mallory)), frame(encodedCall(t, "much"))...))
	}
	eventually(t, "the rest is dropped", func() bool { return victim.Counters().Dropped >= 100 })
	if got := victim.Counters().MessagesIn; got > 10 {
		t.Errorf("%d calls heard, want at most 10", got)
	}
}

// signedGossip is an RPC with one message of an author, with a sequence number of
// choice.
func signedGossip(t *testing.T, author *identity.Credential, data []byte, sequence uint64) []byte {
	t.Helper()
	sk, pk, err := crypto.KeyPairFromStdKey(author.PrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(pk)
	if err != nil {
		t.Fatal(err)
	}
	topic := "ramp/cfp/1"
	msg := &pb.Message{From: []byte(id), Data: data, Seqno: binary.BigEndian.AppendUint64(nil, sequence), Topic: &topic}
	unsigned, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	if msg.Signature, err = sk.Sign(append([]byte(pubsub.SignPrefix), unsigned...)); err != nil {
		t.Fatal(err)
	}
	if msg.Key, err = crypto.MarshalPublicKey(pk); err != nil {
		t.Fatal(err)
	}
	rpc, err := proto.Marshal(&pb.RPC{Publish: []*pb.Message{msg}})
	if err != nil {
		t.Fatal(err)
	}
	return rpc
}

func TestAnOldCallIsHeardOnce(t *testing.T) {
	m := newMarket(t)
	mallory := m.credential("mallory")
	victim := m.start("victim", hearsCalls)
	r := newRaw(t, mallory, victim)
	r.greeted(mallory)
	msg := signedGossip(t, mallory, append(frame(cardOf(mallory)), frame(encodedCall(t, "old"))...), 7)
	newer := signedGossip(t, mallory, append(frame(cardOf(mallory)), frame(encodedCall(t, "new"))...), 7+2*mesh.ReplayWindow)
	s := r.open(pubsub.GossipSubID_v11)
	r.write(s, frame(msg))
	victim.await("the call", func(m protocol.Message) bool { return m.Conversation == "old" })
	r.write(s, frame(newer))
	victim.await("a newer call", func(m protocol.Message) bool { return m.Conversation == "new" })
	late := signedGossip(t, mallory, append(frame(cardOf(mallory)), frame(encodedCall(t, "late"))...), 8)
	r.write(s, frame(late))
	eventually(t, "a call older than the window is dropped", func() bool { return victim.Counters().Dropped > 0 })
	select {
	case got := <-victim.inbox:
		t.Errorf("got %+v", got)
	case <-time.After(time.Millisecond):
	}
}
