package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"ramp/agents/framing"
)

// Enrolment is the only exchange that a peer without a credential may have, and only
// with an agent whose Config.Enrol is set:
//
//	the agent shows its card; the peer sends one request; the agent answers, and closes
//
// The number of requests that are answered at once, and how often one network may ask,
// have bounds of their own, so that strangers take nothing from known agents. A peer
// takes a place only once its request is there, so stalling takes none.

// Applicant is a peer that asks for a certificate.
type Applicant struct {
	// Key is the public key that the channel proves, as SubjectPublicKeyInfo in DER.
	Key []byte
	// Request has at most MaxEnrol bytes; it is nil if the applicant asks too often, or all
	// places are taken for too long.
	Request []byte
}

// Enrol answers an applicant. wrong means that no honest newcomer makes such a request, for example
// with a token that was never issued; it costs the applicant's address enrolWrongCosts.
type Enrol func(ctx context.Context, a Applicant) (answer []byte, wrong bool)

// Bounds of enrolment.
const (
	MaxEnrol        = 64 << 10         // bytes of a request, and of an answer
	EnrolTimeout    = 20 * time.Second // of a whole exchange
	enrolPatience   = 5 * time.Second  // for the request, once the card was shown
	enrolAtOnce     = 8                // requests; further applicants wait for a place
	enrolNetworks   = 4096             // remembered
	enrolWrongCosts = 8                // requests that a wrong one counts for
)

// perNetwork and inAll are the allowances of enrolment. A class or a machine room joins
// from one address. Each wider IPv6 network of the same place has half as much again.
func perNetwork(wider int) Rate {
	return Rate{PerSecond: 0.5 + 0.25*float64(wider), Burst: float64(64 + 32*wider)}
}

// enrolment owns the bounds on applicants: requests that are being answered, and
// requests by network and in total.
type enrolment struct {
	ep   *endpoint
	free chan struct{} // one element per request that is being answered

	mu  sync.Mutex
	all bucket
	by  map[netip.Prefix]*bucket
}

func newEnrolment(ep *endpoint) *enrolment {
	return &enrolment{ep: ep, free: make(chan struct{}, enrolAtOnce), by: map[netip.Prefix]*bucket{}}
}

// admit charges one request to the networks of its peer, and to all together.
func (n *enrolment) admit(from []netip.Prefix, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for wider, p := range from {
		if !n.of(p).take(now, 1, perNetwork(wider)) {
			return false
		}
	}
	return n.all.take(now, 1, Rate{PerSecond: 20, Burst: 256})
}

// fine charges networks for a wrong request, even beyond their allowance.
func (n *enrolment) fine(from []netip.Prefix, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for wider, p := range from {
		b := n.of(p)
		b.take(now, 0, perNetwork(wider)) // for what it has won back
		b.spent += enrolWrongCosts
	}
}

// of returns the bucket of a network. A full table forgets the network whose last
// request is the oldest.
func (n *enrolment) of(p netip.Prefix) *bucket {
	b := n.by[p]
	if b != nil {
		return b
	}
	if len(n.by) >= enrolNetworks {
		delete(n.by, slices.MinFunc(slices.Collect(maps.Keys(n.by)), func(x, y netip.Prefix) int { return n.by[x].at.Compare(n.by[y].at) }))
	}
	b = &bucket{}
	n.by[p] = b
	return b
}

// serve is the exchange on the side of the agent that issues certificates.
func (n *enrolment) serve(s network.Stream) error {
	ctx, cancel := context.WithTimeout(context.Background(), EnrolTimeout) // Enrol returns when its agent stops
	defer cancel()
	if err := s.SetDeadline(time.Now().Add(EnrolTimeout)); err != nil {
		return err
	}
	if err := framing.WriteOne(s, n.ep.card().encode()); err != nil {
		return err
	}
	answer, err := n.answer(ctx, s)
	if err != nil {
		return err
	}
	if err := framing.WriteOne(s, answer); err != nil {
		return err
	}
	return s.Close()
}

// answer reads one request, and answers it unless its peer asks too often.
func (n *enrolment) answer(ctx context.Context, s network.Stream) ([]byte, error) {
	key := s.Conn().RemotePublicKey()
	if key == nil {
		return nil, errMismatch
	}
	raw, err := key.Raw()
	if err != nil {
		return nil, fmt.Errorf("applicant's key: %w", err)
	}
	from, now := networksOf(s.Conn().RemoteMultiaddr()), n.ep.cfg.Now
	if err := s.SetReadDeadline(time.Now().Add(enrolPatience)); err != nil {
		return nil, err
	}
	request, err := framing.Take(bufio.NewReaderSize(s, smallBuffer), MaxEnrol)
	if err != nil {
		n.fine(from, now())
		return nil, fmt.Errorf("applicant's request: %w", err)
	}
	if !n.admit(from, now()) || !n.place(ctx) {
		answer, _ := n.ep.cfg.Enrol(ctx, Applicant{Key: raw})
		return answer, nil
	}
	defer func() { <-n.free }()
	answer, wrong := n.ep.cfg.Enrol(ctx, Applicant{Key: raw, Request: request})
	if wrong {
		n.fine(from, now())
	}
	if len(answer) > MaxEnrol {
		return nil, errors.New("the answer to an applicant is too long")
	}
	return answer, nil
}

// place waits for one of the places, at most for enrolPatience.
func (n *enrolment) place(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, enrolPatience)
	defer cancel()
	select {
	case n.free <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
