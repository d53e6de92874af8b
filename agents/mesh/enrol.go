package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	manet "github.com/multiformats/go-multiaddr/net"
)

// Enrolment is the one exchange that a peer without a credential may have, and
// only with an agent whose Config.Enrol is set:
//
//	the agent shows its card; the peer sends one request; the agent answers, and closes
//
// How many such exchanges there are at once, and how often one address may ask,
// is bounded apart from everything else, so that strangers take nothing from
// those who are known.

// Applicant is a peer that asks to be let in.
type Applicant struct {
	// Key is the public key that the channel proves, as SubjectPublicKeyInfo in DER.
	Key []byte
	// Request is what it asks, at most MaxEnrol bytes; nil if it asks too often.
	Request []byte
}

// Enrol answers an applicant. wrong says that the request was one that no honest
// newcomer makes, such as a token that nobody gave: its address pays for it.
type Enrol func(ctx context.Context, a Applicant) (answer []byte, wrong bool)

// Bounds of enrolment.
const (
	MaxEnrol        = 64 << 10         // bytes of a request, and of an answer
	EnrolTimeout    = 20 * time.Second // of a whole exchange
	enrolPatience   = 5 * time.Second  // for the request, once the card was shown
	enrolAtOnce     = 8                // exchanges; a further one is told to come again
	enrolAddresses  = 4096             // addresses that are remembered
	enrolWrongCosts = 8                // what a wrong request takes off the allowance
)

// perAddress and inAll are the allowances of enrolment. A class or a machine room
// joins from one address.
func perAddress() Rate { return Rate{PerSecond: 0.5, Burst: 64} }
func inAll() Rate      { return Rate{PerSecond: 20, Burst: 256} }

// doorkeeper counts who asks to be let in.
type doorkeeper struct {
	free chan struct{} // has room for exchanges

	mu  sync.Mutex
	all bucket
	by  map[netip.Addr]*bucket
}

func newDoorkeeper() *doorkeeper {
	return &doorkeeper{free: make(chan struct{}, enrolAtOnce), by: map[netip.Addr]*bucket{}}
}

// admit takes n off the allowance of an address, and of all.
func (d *doorkeeper) admit(from netip.Addr, now time.Time, n float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.by[from]
	if b == nil {
		if len(d.by) >= enrolAddresses {
			d.forget()
		}
		b = &bucket{}
		d.by[from] = b
	}
	return b.take(now, n, perAddress()) && d.all.take(now, 1, inAll())
}

// fine takes n off the allowance of an address, below nothing if need be.
func (d *doorkeeper) fine(from netip.Addr, n float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.by[from]; b != nil {
		b.spent += n
	}
}

// forget makes room: who asked last the longest ago is forgotten.
func (d *doorkeeper) forget() {
	var oldest netip.Addr
	for a, b := range d.by {
		if !oldest.IsValid() || b.at.Before(d.by[oldest].at) {
			oldest = a
		}
	}
	delete(d.by, oldest)
}

// originOf is the address that a connection comes from: of IPv6 the network of 64
// bits, which is one customer's.
func originOf(c network.Conn) netip.Addr {
	ip, err := manet.ToIP(c.RemoteMultiaddr())
	if err != nil {
		return netip.IPv6Unspecified() // all without an address share one
	}
	a, _ := netip.AddrFromSlice(ip) // ToIP gives 4 or 16 bytes
	if a = a.Unmap(); a.Is6() {
		p, _ := a.Prefix(64) // it has that many bits
		a = p.Addr()
	}
	return a
}

// serveEnrolment is the exchange as the agent has it that lets others in.
func (m *Mesh) serveEnrolment(s network.Stream) error {
	ctx, cancel := context.WithTimeout(context.Background(), EnrolTimeout) // Enrol returns when its agent stops
	defer cancel()
	if err := s.SetDeadline(time.Now().Add(EnrolTimeout)); err != nil {
		return err
	}
	w := bufio.NewWriterSize(s, smallBuffer)
	if err := errors.Join(writeFrame(w, m.card().encode()), w.Flush()); err != nil {
		return err
	}
	answer, err := m.answerApplicant(ctx, s)
	if err != nil {
		return err
	}
	if err := writeFrame(w, answer); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return s.Close()
}

// answerApplicant reads one request, unless its peer asks too often, and answers it.
func (m *Mesh) answerApplicant(ctx context.Context, s network.Stream) ([]byte, error) {
	key := s.Conn().RemotePublicKey()
	if key == nil {
		return nil, errMismatch
	}
	raw, err := key.Raw()
	if err != nil {
		return nil, fmt.Errorf("applicant's key: %w", err)
	}
	from := originOf(s.Conn())
	select {
	case m.door.free <- struct{}{}:
		defer func() { <-m.door.free }()
	default:
		answer, _ := m.cfg.Enrol(ctx, Applicant{Key: raw})
		return answer, nil
	}
	if !m.door.admit(from, m.cfg.Now(), 1) {
		answer, _ := m.cfg.Enrol(ctx, Applicant{Key: raw})
		return answer, nil
	}
	if err := s.SetReadDeadline(time.Now().Add(enrolPatience)); err != nil {
		return nil, err
	}
	request, err := takeFrame(bufio.NewReaderSize(s, smallBuffer), MaxEnrol)
	if err != nil {
		m.door.fine(from, enrolWrongCosts)
		return nil, fmt.Errorf("applicant's request: %w", err)
	}
	answer, wrong := m.cfg.Enrol(ctx, Applicant{Key: raw, Request: request})
	if wrong {
		m.door.fine(from, enrolWrongCosts)
	}
	if len(answer) > MaxEnrol {
		return nil, errors.New("the answer to an applicant is too long")
	}
	return answer, nil
}
