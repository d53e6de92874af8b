package mesh

import (
	"sync/atomic"
	"time"

	pb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
)

// relayStats counts what the relay service does for others.
type relayStats struct {
	reservations, circuits atomic.Int64
	bytes                  atomic.Uint64
}

// ReservationAllowed counts a new reservation.
func (s *relayStats) ReservationAllowed(renewed bool) {
	if !renewed {
		s.reservations.Add(1)
	}
}

// ReservationClosed counts reservations that have ended.
func (s *relayStats) ReservationClosed(n int) { s.reservations.Add(int64(-n)) }

// ConnectionOpened counts a relayed connection.
func (s *relayStats) ConnectionOpened() { s.circuits.Add(1) }

// ConnectionClosed counts its end.
func (s *relayStats) ConnectionClosed(time.Duration) { s.circuits.Add(-1) }

// BytesTransferred counts bytes.
func (s *relayStats) BytesTransferred(n int) { s.bytes.Add(uint64(n)) }

// The library's tracer can do more.
func (*relayStats) ReservationRequestHandled(pb.Status) {}
func (*relayStats) ConnectionRequestHandled(pb.Status)  {}
func (*relayStats) RelayStatus(bool)                    {}
