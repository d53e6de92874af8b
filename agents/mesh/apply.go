package mesh

import (
	"bufio"
	"context"
	"crypto"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	libp2pcrypto "github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/agents/framing"
	"ramp/protocol"
)

// Errors that a newcomer can act on.
var (
	ErrNotThere    = errors.New("the market does not answer")
	ErrNotThisBank = errors.New("no agent at the addresses issues certificates for this bank")
	ErrNotVouched  = errors.New("the certificate of the agent that answers is not valid")
)

// Application is a newcomer's request for a certificate to an agent that issues them.
type Application struct {
	Key     crypto.Signer    // the newcomer's own, which the certificate will name
	Trust   Trust            // must accept the agent's certificate
	To      protocol.AgentID // the agent
	At      []string         // addresses, each ending in /p2p/ID; addresses of other agents do no harm
	Request []byte
	Now     func() time.Time // nil: time.Now
}

// Apply sends the request over a channel of the newcomer's own key and returns the agent's answer.
// Only the agent itself receives the request. It takes at most EnrolTimeout for each address.
// Errors wrap one of those above; ErrNotVouched comes with the fault of the certificate.
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

// refused returns the most useful error: that of an agent that answers comes first.
func (a Application) refused(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, ErrNotVouched) {
			return err
		}
	}
	if errors.Is(errors.Join(errs...), ErrNotThisBank) {
		return fmt.Errorf("%s: %w", a.To, ErrNotThisBank)
	}
	return notThere(a.At)
}

// notThere is ErrNotThere, with the addresses that were tried.
type notThere []string

func (notThere) Unwrap() error { return ErrNotThere }

func (n notThere) Error() string {
	var places []string
	for _, a := range n {
		if place, ok := HostPort(a); ok && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return fmt.Sprintf("the market at %s does not answer: is the bank running?", strings.Join(places, ", "))
}

// HostPort is the HOST:PORT of a TCP multiaddress.
func HostPort(address string) (string, bool) {
	parts := strings.Split(address, "/")
	if len(parts) < 5 || parts[3] != "tcp" {
		return "", false
	}
	return net.JoinHostPort(parts[2], parts[4]), true
}

// newcomer creates a host that only dials.
func newcomer(key crypto.Signer) (host.Host, error) {
	k, _, err := libp2pcrypto.KeyPairFromStdKey(key)
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	limits, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(rcmgr.DefaultLimits.AutoScale()))
	if err != nil {
		return nil, fmt.Errorf("resource limits: %w", err)
	}
	return hostConfig{ResourceManager: limits, ConnManager: connmgr.NullConnMgr{}, DisableIdentifyAddressDiscovery: true}.start(k)
}

// ask sends the request to one peer and returns its answer.
func (a Application) ask(ctx context.Context, h host.Host, info peer.AddrInfo) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, EnrolTimeout)
	defer cancel()
	if err := h.Connect(ctx, info); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", info, err)
	}
	s, err := h.NewStream(network.WithNoDial(ctx, "connected"), info.ID, protocolEnrolment)
	if err != nil {
		return nil, fmt.Errorf("%s does not support enrolment: %w: %w", info.ID, ErrNotThisBank, err)
	}
	defer func() { _ = s.Reset() }() // the answer is complete, or there is none
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	if err := s.SetDeadline(time.Now().Add(EnrolTimeout)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(s, smallBuffer)
	if err := a.checkAgent(r, info.ID); err != nil {
		return nil, err
	}
	if err := framing.WriteOne(s, a.Request); err != nil {
		return nil, err
	}
	return framing.Take(r, MaxEnrol)
}

// checkAgent reads the other side's card, so that no other agent gets the request.
func (a Application) checkAgent(r *bufio.Reader, id peer.ID) error {
	b, err := framing.Take(r, MaxCard)
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
		return fmt.Errorf("peer %s is %s: %w", id, agent, ErrNotThisBank)
	}
	return nil
}

// AddressesAt returns the addresses that reach an agent with this key that listens at
// these addresses. It leaves out port 0, whose real port is not known in advance.
func AddressesAt(listen []string, key crypto.Signer) ([]string, error) {
	_, pub, err := libp2pcrypto.KeyPairFromStdKey(key)
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	id, err := peer.IDFromPublicKey(pub)
	if err != nil {
		return nil, err
	}
	addrs, err := parseAddresses("listen", listen)
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

// onInterfaces replaces an unspecified address by those of the machine.
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
