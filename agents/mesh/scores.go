package mesh

import (
	"math"
	"net"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Scores of peers, after those of Lotus and Celestia. A peer below a threshold loses, one
// after the other: advertisements, this agent's own messages, and all gossip. One invalid
// message is forgiven, three are not. Scores do not count how much a peer delivers: in
// a small market an honest one may deliver nothing.
const (
	scoreGossip   = -500
	scorePublish  = -1000
	scoreGraylist = -2500
	invalidWeight = -10 // for the square of the invalid messages, which fade in an hour
	misbehaviour  = -10 // for the square of broken promises and early grafts beyond misbehaves
	misbehaves    = 6
	// Agents behind one address, such as a site's, are honest up to a bound; those of this
	// machine always.
	neighbours4 = maxPerAddress / 2
	crowdWeight = -1
	// forwardedCosts are the faults that one invalid message counts for: a peer is cut off
	// for a while at the ninth, and graylisted at the sixteenth within an hour.
	forwardedCosts = 4
	scoreDecay     = 10 * time.Second // between two steps of fading
	scoreZero      = 0.01             // what counts as nothing
	scoreMemory    = 10 * time.Minute // of peers that have left
	scoreInterval  = 10 * time.Second // between two readings for Scores
)

// decayWithin is the share of a score that is left after each scoreDecay, if nothing is left
// after d.
func decayWithin(d time.Duration) float64 {
	return pubsub.ScoreParameterDecayWithBase(d, scoreDecay, scoreZero)
}

// scoring are the options for scores, and for the gater, which drops some messages of
// peers whose messages are mostly ignored while the validators are busy.
func (g *gossip) scoring() []pubsub.Option {
	topic := func() *pubsub.TopicScoreParams {
		return &pubsub.TopicScoreParams{
			SkipAtomicValidation: true, TopicWeight: 1, TimeInMeshQuantum: time.Second,
			InvalidMessageDeliveriesWeight: invalidWeight, InvalidMessageDeliveriesDecay: decayWithin(time.Hour),
		}
	}
	gater := pubsub.NewPeerGaterParams(.33, decayWithin(2*time.Minute), decayWithin(10*time.Minute))
	gater.DecayInterval, gater.DecayToZero = scoreDecay, scoreZero
	return []pubsub.Option{
		pubsub.WithPeerScore(&pubsub.PeerScoreParams{
			SkipAtomicValidation: true,
			AppSpecificScore:     func(peer.ID) float64 { return 0 }, AppSpecificWeight: 1,
			IPColocationFactorThreshold: neighbours4, IPColocationFactorWeight: crowdWeight,
			IPColocationFactorWhitelist: []*net.IPNet{{IP: net.IPv4(127, 0, 0, 0), Mask: net.CIDRMask(8, 32)}, {IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)}},
			BehaviourPenaltyThreshold:   misbehaves, BehaviourPenaltyWeight: misbehaviour, BehaviourPenaltyDecay: decayWithin(time.Hour),
			DecayInterval: scoreDecay, DecayToZero: scoreZero, RetainScore: scoreMemory,
			Topics: map[string]*pubsub.TopicScoreParams{topicPresence: topic(), topicCalls: topic()},
		}, &pubsub.PeerScoreThresholds{
			SkipAtomicValidation: true,
			GossipThreshold:      scoreGossip, PublishThreshold: scorePublish, GraylistThreshold: scoreGraylist, AcceptPXThreshold: math.MaxInt32,
		}),
		pubsub.WithPeerScoreInspect(func(all map[peer.ID]float64) { g.scores.Store(&all) }, scoreInterval),
		pubsub.WithPeerGater(gater),
	}
}

// Scores sums up what this agent thinks of its peers' gossip: how many are below zero, and
// how many so far that it takes none of theirs.
type Scores struct {
	Peers, Low, Graylisted int
	Worst                  float64
}

// Scores returns the scores of some seconds ago.
func (m *Mesh) Scores() (s Scores) {
	all := m.gossip.scores.Load()
	if all == nil {
		return s
	}
	for _, score := range *all {
		s.Peers++
		s.Worst = min(s.Worst, score)
		if score < 0 {
			s.Low++
		}
		if score < scoreGraylist {
			s.Graylisted++
		}
	}
	return s
}
