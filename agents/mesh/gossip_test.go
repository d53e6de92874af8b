package mesh_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
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

// shy is a host whose gossip library hears of peers by a bus of its own, as an agent's does.
type shy struct {
	host.Host
	bus event.Bus
}

func (s shy) EventBus() event.Bus { return s.bus }

// newGossiper is a gossiper with a credential of its own. Like an agent, it speaks gossip before it meets the
// victim, and begins to with the victim when they have shown each other their cards.
func newGossiper(t *testing.T, key *identity.Credential, victim *agent) gossiper {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	bus := eventbus.NewBus()
	met, err := bus.Emitter(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		t.Fatal(err)
	}
	var topic *pubsub.Topic
	r := newRaw(t, key, victim, func(h host.Host) {
		ps, err := pubsub.NewGossipSub(ctx, shy{h, bus})
		if err == nil {
			topic, err = ps.Join("ramp/cfp/1")
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	r.greeted(key)
	if err := met.Emit(event.EvtPeerIdentificationCompleted{Peer: r.victim, Protocols: []libp2pprotocol.ID{pubsub.GossipSubID_v11}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim hears the topic", func() bool { return len(topic.ListPeers()) > 0 })
	return gossiper{r, topic}
}

// serveCalls takes the messages that the victim sends on a stream of its own.
func (r *raw) serveCalls(key *identity.Credential, calls chan<- []byte) {
	r.SetStreamHandler(mesh.ProtocolACL, func(s network.Stream) {
		in := bufio.NewReader(s)
		if _, err := readRawFrame(in); err != nil { // the card
			return
		}
		if _, err := s.Write(frame(cardOf(key))); err != nil {
			return
		}
		for {
			b, err := readRawFrame(in)
			if err != nil {
				return
			}
			calls <- b
		}
	})
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

// presentSeller is a raw peer of whom an agent has heard that it sells.
func presentSeller(t *testing.T, key *identity.Credential, victim *agent) *raw {
	t.Helper()
	r := newRaw(t, key, victim)
	b, err := codec.Encode(presence(protocol.KindResource, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.write(r.open(mesh.ProtocolPresence), append(frame(cardOf(key)), frame(b)...))
	victim.awaitPresences(map[protocol.AgentID]bool{key.ID: true})
	return r
}

func TestASellerMetJustNowIsCalledDirectlyToo(t *testing.T) {
	m := newMarket(t)
	key := m.credential("seller")
	user := m.start("user", nil)
	calls := make(chan []byte, 2)
	presentSeller(t, key, user).serveCalls(key, calls) // it does not even speak gossip
	user.Send(callForProposals())
	select {
	case call := <-calls:
		msg, err := codec.NewOpener(m.trust, 1).Open(call, user.Self(), time.Now())
		if err != nil || msg.Performative != protocol.CFP {
			t.Errorf("got %+v, %v", msg, err)
		}
	case <-time.After(patience):
		t.Error("the call was not heard")
	}
}

func TestASellerMetLongAgoIsCalledByGossipOnly(t *testing.T) {
	m := newMarket(t)
	key := m.credential("seller")
	var late atomic.Int64
	user := m.start("user", func(c *mesh.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	})
	calls := make(chan []byte, 2)
	presentSeller(t, key, user).serveCalls(key, calls)
	late.Store(int64(mesh.HearerGrace))
	user.Send(callForProposals())
	eventually(t, "the call is published", func() bool { return user.Counters().MessagesOut > 0 })
	user.Send(query(1, key.ID)) // queued behind what the call would have sent
	select {
	case b := <-calls:
		msg, err := codec.NewOpener(m.trust, 1).Open(b, user.Self(), time.Now())
		if err != nil || msg.Performative != protocol.QueryRef {
			t.Errorf("got %+v, %v", msg, err)
		}
	case <-time.After(patience):
		t.Error("the query was not heard")
	}
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

func TestForwardersOfInvalidGossipAreCutOff(t *testing.T) {
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
	eventually(t, "the rest is dropped", func() bool {
		g.publish(append(frame(cardOf(mallory)), frame(encodedCall(t, "much"))...)) // the library sends a part of many at once
		return victim.Counters().Dropped >= 100
	})
	if got := victim.Counters().MessagesIn; got > 10 {
		t.Errorf("%d calls heard, want at most 10", got)
	}
}

// signedGossip is an RPC with one message of an author, with a sequence number of
// choice.
func signedGossip(t *testing.T, author *identity.Credential, data []byte, sequence uint64) []byte {
	t.Helper()
	return signedGossipOn(t, "ramp/cfp/1", author, data, sequence)
}

func signedGossipOn(t *testing.T, topic string, author *identity.Credential, data []byte, sequence uint64) []byte {
	t.Helper()
	sk, pk, err := crypto.KeyPairFromStdKey(author.PrivateKey())
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(pk)
	if err != nil {
		t.Fatal(err)
	}
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
