package contract

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// Verified is a bundle whose user's signature was verified. Only this package makes one
// with Checked() == true.
type Verified struct {
	ID     protocol.ContractID
	Bundle protocol.Bundle
	User   identity.Peer
	Signed time.Time // signing time according to the user; may be zero
	DER    []byte    // the user's SignedData

	checked bool
}

// Checked reports whether this package verified v.
func (v Verified) Checked() bool { return v.checked }

// Sellers are those who must countersign, each once, in order of their first unit.
func (v Verified) Sellers() []protocol.AgentID { return bundle(v.Bundle).sellers() }

// Sale is a bundle that its user and one of its sellers have signed.
type Sale struct {
	Verified
	Seller        identity.Peer
	Countersigned time.Time // signing time according to the seller
	DER           []byte    // the seller's SignedData, which contains the user's
}

// Sign signs a bundle as its user, in DER; now is the signing time. The same
// arguments give the same bytes.
func Sign(c *identity.Credential, b protocol.Bundle, now time.Time) ([]byte, error) {
	_, der, err := sign(c, b, now)
	return der, err
}

func sign(c *identity.Credential, b protocol.Bundle, now time.Time) (octets, der []byte, err error) {
	if c.ID != b.User {
		return nil, nil, fmt.Errorf("bundle of %s signed by %s: %w", b.User, c.ID, ErrSigner)
	}
	if octets, err = Encode(b); err != nil {
		return nil, nil, err
	}
	der, err = seal(c, octets, now)
	return octets, der, err
}

// SignVerified combines Sign and OpenBundle. It verifies the certificate, but neither
// reads the new document nor verifies its signature.
func SignVerified(c *identity.Credential, b protocol.Bundle, trust *identity.Trust, now time.Time) (Verified, error) {
	octets, der, err := sign(c, b, now)
	if err != nil {
		return Verified{}, err
	}
	user, err := trust.Verify(c.ChainDER(), now)
	if err != nil {
		return Verified{}, fmt.Errorf("bundle: %w", err)
	}
	return Verified{
		ID: ID(octets), Bundle: protocol.Bundle(inUTC(b)), User: user, Signed: now.UTC().Truncate(time.Second), DER: der, checked: true,
	}, nil
}

// Countersign signs a user's verified SignedData as one of the sellers of its
// bundle, in DER; now is the signing time.
func Countersign(c *identity.Credential, v Verified, now time.Time) ([]byte, error) {
	if !v.checked {
		return nil, fmt.Errorf("countersign as %s: the bundle was not verified: %w", c.ID, ErrSignature)
	}
	if !slices.Contains(v.Sellers(), c.ID) {
		return nil, fmt.Errorf("contract %s names no seller %s: %w", v.ID, c.ID, ErrSigner)
	}
	return seal(c, v.DER, now)
}
