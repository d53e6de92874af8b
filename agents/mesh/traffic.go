package mesh

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/metrics"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pprotocol "github.com/libp2p/go-libp2p/core/protocol"
)

// The kinds of Traffic.
const (
	TrafficPresence = "presence" // gossip and meetings: who is there
	TrafficMessages = "messages" // between two agents
	TrafficFiles    = "files"
	TrafficOther    = "other" // of the library, and of enrolment
)

// Traffic is the bytes of streams since the mesh started, without those of encryption.
// Calls to many sellers go by gossip too; users of a large market make none.
type Traffic struct{ In, Out uint64 }

// traffic counts the bytes of each kind. It is the library's reporter, and tells the
// library nothing back.
type traffic struct {
	of [4]struct{ in, out atomic.Uint64 }
}

var _ metrics.Reporter = (*traffic)(nil)

var trafficKinds = [...]string{TrafficPresence, TrafficMessages, TrafficFiles, TrafficOther}

func trafficOf(id libp2pprotocol.ID) int {
	switch id {
	case protocolPresence, protocolIntroductions:
		return 0
	case protocolACL, protocolBare:
		return 1
	case protocolFiles:
		return 2
	}
	if strings.HasPrefix(string(id), "/meshsub/") {
		return 0
	}
	return 3
}

// LogSentMessageStream counts what a stream has sent.
func (t *traffic) LogSentMessageStream(n int64, id libp2pprotocol.ID, _ peer.ID) {
	t.of[trafficOf(id)].out.Add(uint64(n))
}

// LogRecvMessageStream counts what a stream has received.
func (t *traffic) LogRecvMessageStream(n int64, id libp2pprotocol.ID, _ peer.ID) {
	t.of[trafficOf(id)].in.Add(uint64(n))
}

// The library's reporter can do more.
func (*traffic) LogSentMessage(int64)                                        {}
func (*traffic) LogRecvMessage(int64)                                        {}
func (*traffic) GetBandwidthForPeer(peer.ID) (s metrics.Stats)               { return s }
func (*traffic) GetBandwidthForProtocol(libp2pprotocol.ID) (s metrics.Stats) { return s }
func (*traffic) GetBandwidthTotals() (s metrics.Stats)                       { return s }
func (*traffic) GetBandwidthByPeer() map[peer.ID]metrics.Stats               { return nil }
func (*traffic) GetBandwidthByProtocol() map[libp2pprotocol.ID]metrics.Stats { return nil }
func (*traffic) Reset()                                                      {}
func (*traffic) TrimIdle(time.Time)                                          {}

// Traffic returns the bytes so far, by kind.
func (m *Mesh) Traffic() map[string]Traffic {
	all := map[string]Traffic{}
	for i, kind := range trafficKinds {
		t := &m.ep.traffic.of[i]
		all[kind] = Traffic{t.in.Load(), t.out.Load()}
	}
	return all
}
