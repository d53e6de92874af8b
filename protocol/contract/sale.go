package contract

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// Verified is a bundle whose user's signature was verified. Only this package
// makes one for which Checked reports true.
type Verified struct {
	ID     protocol.ContractID
	Bundle protocol.Bundle
	User   identity.Peer
	Signed time.Time // when the user says that it signed; zero if it does not say
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
	Countersigned time.Time // when the seller says that it signed
	DER           []byte    // the seller's SignedData, in which the user's is
}

// Sign signs a bundle as its user, in DER; now is the signing time. The same
// arguments give the same bytes.
func Sign(c *identity.Credential, b protocol.Bundle, now time.Time) ([]byte, error) {
	if c.ID != b.User {
		return nil, fmt.Errorf("bundle of %s signed by %s: %w", b.User, c.ID, ErrSigner)
	}
	octets, err := Encode(b)
	if err != nil {
		return nil, err
	}
	return seal(c, octets, now)
}

// SignVerified is OpenBundle of Sign: the certificate is judged, and the signature
// that was just made is not verified once more.
func SignVerified(c *identity.Credential, b protocol.Bundle, trust *identity.Trust, now time.Time) (Verified, error) {
	der, err := Sign(c, b, now)
	if err != nil {
		return Verified{}, err
	}
	s, err := parse(der)
	if err != nil {
		return Verified{}, err
	}
	user, err := trust.Verify(s.chain, now)
	if err != nil {
		return Verified{}, fmt.Errorf("bundle: %w", err)
	}
	read, err := Decode(s.octets)
	if err != nil {
		return Verified{}, err
	}
	return Verified{ID: ID(s.octets), Bundle: read, User: user, Signed: now.UTC().Truncate(time.Second), DER: der, checked: true}, nil
}

// Countersign signs a user's verified SignedData as one of the sellers of its
// bundle, in DER; now is the signing time.
func Countersign(c *identity.Credential, v Verified, now time.Time) ([]byte, error) {
	if !v.checked {
		return nil, fmt.Errorf("countersign as %s a bundle that was not verified: %w", c.ID, ErrSignature)
	}
	if !slices.Contains(v.Sellers(), c.ID) {
		return nil, fmt.Errorf("contract %s names no seller %s: %w", v.ID, c.ID, ErrSigner)
	}
	return seal(c, v.DER, now)
}
