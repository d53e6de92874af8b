package contract

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// maxRemembered bounds a bundle that an Opener remembers, in bytes of SignedData;
// it suffices for about 60 units. Verifying a greater one again costs little
// beside reading it.
const maxRemembered = 32 << 10

// Opener verifies signed documents and remembers bundles, sales and receipts, so
// that the copies of k sellers cost one verification of the user's signature, a
// sale that a user sends and a seller in doubt sends again one of the seller's, and
// a receipt that the bank sends and a seller passes on one of the bank's. It is
// safe for use by several workers.
type Opener struct {
	trust    *identity.Trust
	known    *identity.Memory[known]
	sales    *identity.Memory[knownSale]
	receipts *identity.Memory[knownReceipt]
}

// known is a bundle whose signature was verified. Its signer is judged anew each
// time, because certificates expire and are revoked.
type known struct {
	der    []byte
	chain  [][]byte
	signed time.Time
	id     protocol.ContractID
	bundle protocol.Bundle
}

// knownSale is a sale of which the seller's signature was verified. The bundle in it
// is remembered by itself, and the seller judged anew each time, like its user.
type knownSale struct {
	der           []byte
	chain         [][]byte
	countersigned time.Time
	bundle        []byte // the user's SignedData
}

// NewOpener returns an Opener that remembers at most n bundles, as many sales and
// as many receipts, typically of 2 KB and never of more than about 64 KB in memory.
func NewOpener(trust *identity.Trust, n int) *Opener {
	return &Opener{
		trust: trust, known: identity.NewMemory[known](n), sales: identity.NewMemory[knownSale](n), receipts: identity.NewMemory[knownReceipt](n),
	}
}

// tail is the end of a signed document, where its signature is: what it is looked up
// by. That the rest is the same too is for the caller to compare.
func tail(der []byte) (key [32]byte) {
	copy(key[:], der[max(0, len(der)-len(key)):])
	return key
}

// OpenBundle verifies a bundle that its user signed, as things stood at a time.
func OpenBundle(der []byte, trust *identity.Trust, at time.Time) (Verified, error) {
	return NewOpener(trust, 0).Bundle(der, at)
}

// OpenSale verifies both layers of a bundle that its user and one of its sellers
// signed, as things stood at a time.
func OpenSale(der []byte, trust *identity.Trust, at time.Time) (Sale, error) {
	return NewOpener(trust, 0).Sale(der, at)
}

// Bundle verifies a bundle that its user signed, as things stood at a time.
func (o *Opener) Bundle(der []byte, at time.Time) (Verified, error) {
	key := tail(der)
	k, remembered := o.known.Recall(key)
	remembered = remembered && bytes.Equal(k.der, der)
	var user identity.Peer
	var err error
	if remembered {
		user, err = o.trust.Verify(k.chain, at)
	} else {
		// What is remembered must not change when the caller uses der again.
		k, user, err = readBundle(bytes.Clone(der), o.trust, at)
	}
	if err != nil {
		return Verified{}, fmt.Errorf("bundle: %w", err)
	}
	if !remembered && len(der) <= maxRemembered {
		o.known.Remember(key, k)
	}
	b := k.bundle
	b.Units = slices.Clone(b.Units) // what is remembered is nobody's to change
	return Verified{ID: k.id, Bundle: b, User: user, Signed: k.signed, DER: bytes.Clone(der), checked: true}, nil
}

// Sale verifies both layers of a bundle that its user and one of its sellers
// signed, as things stood at a time.
func (o *Opener) Sale(der []byte, at time.Time) (Sale, error) {
	der = bytes.Clone(der)
	k, seller, err := o.outer(der, at)
	if err != nil {
		return Sale{}, fmt.Errorf("sale: %w", err)
	}
	v, err := o.Bundle(k.bundle, at)
	if err != nil {
		return Sale{}, fmt.Errorf("sale by %s: %w", seller.ID, err)
	}
	if !slices.Contains(v.Sellers(), seller.ID) {
		return Sale{}, fmt.Errorf("contract %s names no seller %s: %w", v.ID, seller.ID, ErrSigner)
	}
	return Sale{Verified: v, Seller: seller, Countersigned: k.countersigned, DER: der}, nil
}

// outer verifies the seller's layer of a sale.
func (o *Opener) outer(der []byte, at time.Time) (knownSale, identity.Peer, error) {
	key := tail(der)
	if k, ok := o.sales.Recall(key); ok && bytes.Equal(k.der, der) {
		seller, err := o.trust.Verify(k.chain, at)
		return k, seller, err
	}
	der = bytes.Clone(der)
	s, seller, countersigned, err := unseal(der, o.trust, at)
	k := knownSale{der: der, chain: s.chain, countersigned: countersigned, bundle: s.octets}
	if err == nil && len(der) <= maxRemembered {
		o.sales.Remember(key, k)
	}
	return k, seller, err
}

// readBundle verifies a bundle in full.
func readBundle(der []byte, trust *identity.Trust, at time.Time) (known, identity.Peer, error) {
	s, user, signed, err := unseal(der, trust, at)
	if err != nil {
		return known{}, user, err
	}
	b, err := Decode(s.octets)
	if err != nil {
		return known{}, user, err
	}
	if user.ID != b.User {
		return known{}, user, fmt.Errorf("bundle of %s is signed by %s: %w", b.User, user.ID, ErrSigner)
	}
	return known{der: der, chain: s.chain, signed: signed, id: ID(s.octets), bundle: b}, user, nil
}

// unseal verifies a SignedData: first who signed, which is mostly remembered and
// stops strangers, then the signature.
func unseal(der []byte, trust *identity.Trust, at time.Time) (s sealed, by identity.Peer, signed time.Time, err error) {
	if s, err = parse(der); err != nil {
		return s, by, signed, err
	}
	if by, err = trust.Verify(s.chain, at); err != nil {
		return s, by, signed, err
	}
	signed, err = s.verify(by.Chain[0])
	return s, by, signed, err
}

// Content is what a SignedData holds, with nothing verified but its form: the
// octets of a document, or of a sale the user's SignedData. It is for reading
// one's own records, which were verified before they were kept.
func Content(der []byte) ([]byte, error) {
	s, err := parse(der)
	return bytes.Clone(s.octets), err
}

// Signer is whose certificate a SignedData names as the signer's, with nothing
// verified. Like Content it is for one's own records.
func Signer(der []byte) (protocol.AgentID, error) {
	s, err := parse(der)
	if err != nil {
		return "", err
	}
	leaf, err := x509.ParseCertificate(s.chain[0])
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return identity.ID(leaf)
}
