package mesh

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"ramp/agents/framing"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// Reasons to refuse a peer.
var (
	errMalformed = framing.ErrMalformed
	errBound     = framing.ErrBound
	errMismatch  = errors.New("the certificate's key is not the key of the channel")
	errSilent    = errors.New("silent")
	errCutOff    = errors.New("this peer is cut off for now")
)

// card is how an agent introduces itself: the certificate chain that names its key, and
// the addresses that it claims.
type card struct {
	chain [][]byte
	addrs []ma.Multiaddr
}

func (c card) encode() []byte {
	addrs := make([][]byte, 0, len(c.addrs))
	for _, a := range c.addrs[:min(len(c.addrs), MaxAddresses)] {
		addrs = append(addrs, a.Bytes())
	}
	return framing.AppendList(framing.AppendList(nil, c.chain), addrs)
}

func decodeCard(b []byte) (card, error) {
	if len(b) > MaxCard {
		return card{}, fmt.Errorf("card of %d bytes, at most %d: %w", len(b), MaxCard, errBound)
	}
	f := framing.Fields{Rest: b}
	c := card{chain: f.List(identity.MaxChain)}
	addrs := f.List(MaxAddresses)
	if err := f.Finish(); err != nil {
		return card{}, fmt.Errorf("card: %w", err)
	}
	c.addrs = dialable(addrs)
	return c, nil
}

// dialable keeps the addresses that this host can dial. A newer agent may list other transports.
func dialable(all [][]byte) []ma.Multiaddr {
	var out []ma.Multiaddr
	for _, b := range all {
		if len(b) > maxAddress || len(out) == MaxAddresses {
			continue
		}
		if a, err := ma.NewMultiaddrBytes(b); err == nil && claimable.MatchString(a.String()) {
			out = append(out, a)
		}
	}
	return out
}

// verify returns the agent that a card names, whose key must be that of id.
func (c card) verify(t Trust, id peer.ID, at time.Time) (protocol.AgentID, error) {
	agent, _, err := c.holder(t, id, at)
	return agent, err
}

// issuer is an authority that the market trusts: the hash of its name.
type issuer [16]byte

// holder returns the agent that a card names, whose key must be that of id, and the
// authority that vouches for it.
func (c card) holder(t Trust, id peer.ID, at time.Time) (protocol.AgentID, issuer, error) {
	p, err := t.Verify(c.chain, at)
	if err != nil {
		return "", issuer{}, err
	}
	owner, err := peerOf(p.Chain[0])
	if err != nil {
		return "", issuer{}, err
	}
	if owner != id {
		return "", issuer{}, fmt.Errorf("%s at peer %s: %w", p.ID, id, errMismatch)
	}
	name := sha256.Sum256(p.Chain[len(p.Chain)-1].RawIssuer)
	return p.ID, issuer(name[:16]), nil
}

// peerOf is the peer that holds a certificate's key.
func peerOf(cert *x509.Certificate) (peer.ID, error) {
	var key crypto.PubKey
	var err error
	switch cert.PublicKey.(type) {
	case *ecdsa.PublicKey:
		key, err = crypto.UnmarshalECDSAPublicKey(cert.RawSubjectPublicKeyInfo)
	case *rsa.PublicKey:
		key, err = crypto.UnmarshalRsaPublicKey(cert.RawSubjectPublicKeyInfo)
	default:
		return "", fmt.Errorf("key of type %T, want P-256 or RSA: %w", cert.PublicKey, errMismatch)
	}
	if err != nil {
		return "", fmt.Errorf("certificate's key: %w", err)
	}
	return peer.IDFromPublicKey(key)
}
