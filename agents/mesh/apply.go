package mesh

import (
	"bufio"
	"context"
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p"
	libp2pcrypto "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/protocol"
)

// What a newcomer can act on.
var (
	ErrNotThere    = errors.New("none of the addresses answers")
	ErrNotThisBank = errors.New("nobody at the addresses lets newcomers in for this bank")
	ErrNotVouched  = errors.New("the certificate of who answers does not count")
)

// Application is what a newcomer without a certificate asks an agent.
type Application struct {
	Key     crypto.Signer    // its own, which the certificate will be for
	Trust   Trust            // that the agent's certificate must lead to
	To      protocol.AgentID // who is asked
	At      []string         // addresses, each ending in /p2p/ID; others than its own do no harm
	Request []byte
	Now     func() time.Time // nil: time.Now
}

// Apply asks an agent to be let in, over a channel of the newcomer's own key, and
// returns its answer. The request is sent to nobody but the agent itself. It takes
// EnrolTimeout for each address at most. An error wraps one of those above, and
// ErrNotVouched what is wrong with the certificate.
func Apply(ctx context.Context, a Application) ([]byte, error) {
	if a.Now == nil {
		a.Now = time.Now
	}
	infos, err := parseBootstrap(a.At)
	if err != nil {
		return nil, err
	}
	h, err := newcomer(a.Key)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	var errs []error
	for _, info := range infos {
		answer, err := a.ask(ctx, h, info)
		if err == nil {
			return answer, nil
		}
		errs = append(errs, err)
	}
	return nil, a.refused(errs)
}

// refused is the error that says most: who answers is nearer than who does not.
func (a Application) refused(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, ErrNotVouched) {
			return err
		}
	}
	if errors.Is(errors.Join(errs...), ErrNotThisBank) {
		return fmt.Errorf("%s: %w", a.To, ErrNotThisBank)
	}
	return fmt.Errorf("%w: %w", ErrNotThere, errors.Join(errs...))
}

// newcomer is a host that only dials.
func newcomer(key crypto.Signer) (host.Host, error) {
	k, _, err := libp2pcrypto.KeyPairFromStdKey(key)
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	return libp2p.New(libp2p.Identity(k), libp2p.NoListenAddrs, libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Security(noise.ID, noise.New), libp2p.WithDialTimeout(MeetTimeout), libp2p.UserAgent("ramp"),
		libp2p.Ping(false), libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery())
}

// ask has the exchange with one peer.
func (a Application) ask(ctx context.Context, h host.Host, info peer.AddrInfo) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, EnrolTimeout)
	defer cancel()
	if err := h.Connect(ctx, info); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", info, err)
	}
	s, err := h.NewStream(network.WithNoDial(ctx, "connected"), info.ID, protocolEnrolment)
	if err != nil {
		return nil, fmt.Errorf("%s has no enrolment: %w: %w", info.ID, ErrNotThisBank, err)
	}
	defer func() { _ = s.Reset() }() // it is at its end, or of no use
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	if err := s.SetDeadline(time.Now().Add(EnrolTimeout)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	if err := a.isWhoIsMeant(r, info.ID); err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(s, smallBuffer)
	if err := errors.Join(writeFrame(w, a.Request), w.Flush()); err != nil {
		return nil, err
	}
	return takeFrame(r, MaxEnrol)
}

// isWhoIsMeant reads the other side's card: the request is for nobody else.
func (a Application) isWhoIsMeant(r *bufio.Reader, id peer.ID) error {
	b, err := takeFrame(r, MaxCard)
	if err != nil {
		return fmt.Errorf("card of %s: %w", id, err)
	}
	c, err := decodeCard(b)
	if err != nil {
		return err
	}
	agent, err := c.verify(a.Trust, id, a.Now())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotVouched, err)
	}
	if agent != a.To {
		return fmt.Errorf("at %s is %s: %w", id, agent, ErrNotThisBank)
	}
	return nil
}

// AddressesAt are the addresses at which an agent with a key would be reached
// that listens as told; those with port 0 are left out, since nobody knows the
// port before.
func AddressesAt(listen []string, key crypto.Signer) ([]string, error) {
	_, pub, err := libp2pcrypto.KeyPairFromStdKey(key)
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	id, err := peer.IDFromPublicKey(pub)
	if err != nil {
		return nil, err
	}
	addrs, err := parseAddresses("Listen", listen)
	if err != nil {
		return nil, err
	}
	var fixed []ma.Multiaddr
	for _, a := range addrs {
		if port, err := a.ValueForProtocol(ma.P_TCP); err == nil && port != "0" {
			fixed = append(fixed, a)
		}
	}
	own, err := manet.InterfaceMultiaddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	var out []string
	for _, a := range fixed {
		for _, r := range onInterfaces(a, own) {
			out = append(out, r.String()+"/p2p/"+id.String())
		}
	}
	return out[:min(len(out), MaxAddresses)], nil
}

// onInterfaces puts the machine's own addresses in place of an unspecified one.
func onInterfaces(a ma.Multiaddr, own []ma.Multiaddr) []ma.Multiaddr {
	if !manet.IsIPUnspecified(a) {
		return []ma.Multiaddr{a}
	}
	first, rest := ma.SplitFirst(a)
	var out []ma.Multiaddr
	for _, o := range own {
		if kind, _ := ma.SplitFirst(o); kind != nil && kind.Protocol().Code == first.Protocol().Code && !manet.IsIP6LinkLocal(o) {
			out = append(out, o.Encapsulate(rest))
		}
	}
	return out
}
