package contract

import (
	"bytes"
	"crypto/sha256"
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

// Opener verifies signed documents and remembers the bundles, so that the copies
// of k sellers cost one verification of the user's signature. It is safe for use
// by several workers.
type Opener struct {
	trust *identity.Trust
	known *identity.Memory[opened]
}

// opened is a bundle with a good signature, whoever signed it.
type opened struct {
	unsealed
	id     protocol.ContractID
	bundle protocol.Bundle
}

// NewOpener returns an Opener that remembers at most n bundles (each up to
// protocol.MaxSignature bytes, typically 2 KB).
func NewOpener(trust *identity.Trust, n int) *Opener {
	return &Opener{trust: trust, known: identity.NewMemory[opened](n)}
}

// OpenBundle verifies a bundle that its user signed, as things stood at a time.
func OpenBundle(der []byte, trust *identity.Trust, at time.Time) (Verified, error) {
	return (&Opener{trust: trust}).Bundle(der, at)
}

// OpenSale verifies both layers of a bundle that its user and one of its sellers
// signed, as things stood at a time.
func OpenSale(der []byte, trust *identity.Trust, at time.Time) (Sale, error) {
	return (&Opener{trust: trust}).Sale(der, at)
}

// Bundle verifies a bundle that its user signed, as things stood at a time.
func (o *Opener) Bundle(der []byte, at time.Time) (Verified, error) {
	op, err := o.open(der)
	if err != nil {
		return Verified{}, fmt.Errorf("bundle: %w", err)
	}
	user, err := o.trust.Verify(op.chain, at)
	if err != nil {
		return Verified{}, fmt.Errorf("bundle %s: user: %w", op.id, err)
	}
	if user.ID != op.bundle.User {
		return Verified{}, fmt.Errorf("bundle %s of %s is signed by %s: %w", op.id, op.bundle.User, user.ID, ErrSigner)
	}
	b := op.bundle
	b.Units = slices.Clone(b.Units) // what is remembered is nobody's to change
	return Verified{ID: op.id, Bundle: b, User: user, Signed: op.signed, DER: bytes.Clone(der), checked: true}, nil
}

// Sale verifies both layers of a bundle that its user and one of its sellers
// signed, as things stood at a time.
func (o *Opener) Sale(der []byte, at time.Time) (Sale, error) {
	outer, err := unseal(der)
	if err != nil {
		return Sale{}, fmt.Errorf("sale: %w", err)
	}
	seller, err := o.trust.Verify(outer.chain, at)
	if err != nil {
		return Sale{}, fmt.Errorf("sale: seller: %w", err)
	}
	v, err := o.Bundle(outer.octets, at)
	if err != nil {
		return Sale{}, fmt.Errorf("sale by %s: %w", seller.ID, err)
	}
	if !slices.Contains(v.Sellers(), seller.ID) {
		return Sale{}, fmt.Errorf("contract %s names no seller %s: %w", v.ID, seller.ID, ErrSigner)
	}
	return Sale{Verified: v, Seller: seller, Countersigned: outer.signed, DER: bytes.Clone(der)}, nil
}

func (o *Opener) open(der []byte) (opened, error) {
	key := sha256.Sum256(der)
	if o.known != nil {
		if op, ok := o.known.Recall(key); ok {
			return op, nil
		}
	}
	u, err := unseal(der)
	if err != nil {
		return opened{}, err
	}
	b, err := Decode(u.octets)
	if err != nil {
		return opened{}, err
	}
	op := opened{unsealed: u, id: ID(u.octets), bundle: b}
	if o.known != nil {
		o.known.Remember(key, op)
	}
	return op, nil
}
