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

// maxRemembered bounds a bundle that an Opener remembers, in bytes of SignedData; it
// suffices for about 60 units. Reading a larger one costs more than verifying it again.
const maxRemembered = 32 << 10

// Opener verifies signed documents and remembers bundles, sales and receipts. So it verifies the
// user's signature once for the copies of k sellers, the seller's once when both the user and a
// seller in doubt send a sale, and the bank's once when a seller passes a receipt on. It is safe
// for use by several workers. Results share the remembered DER, which nobody may change.
type Opener struct {
	trust    *identity.Trust
	known    *identity.Memory[known]
	sales    *identity.Memory[knownSale]
	receipts *identity.Memory[knownReceipt]
}

// known is a bundle with a verified signature. Its signer is verified each time, because
// certificates expire and are revoked.
type known struct {
	der    []byte
	chain  [][]byte
	signed time.Time
	id     protocol.ContractID
	bundle protocol.Bundle
}

// knownSale is a sale with a verified seller's signature. Its bundle is remembered
// separately. The seller is verified each time, like the user.
type knownSale struct {
	der           []byte
	chain         [][]byte
	countersigned time.Time
	bundle        []byte // the user's SignedData
}

// NewOpener returns an Opener that remembers at most n bundles, n sales and n receipts,
// of typically 2 KB and at most about 64 KB in memory.
func NewOpener(trust *identity.Trust, n int) *Opener {
	return &Opener{
		trust: trust, known: identity.NewMemory[known](n), sales: identity.NewMemory[knownSale](n), receipts: identity.NewMemory[knownReceipt](n),
	}
}

// tail is the end of a signed document, where its signature is. It is the key of the
// document; the caller compares the rest.
func tail(der []byte) (key [32]byte) {
	copy(key[:], der[max(0, len(der)-len(key)):])
	return key
}

// OpenBundle verifies a bundle that its user signed, as of a time.
func OpenBundle(der []byte, trust *identity.Trust, at time.Time) (Verified, error) {
	return NewOpener(trust, 0).Bundle(der, at)
}

// OpenSale verifies both layers of a bundle that its user and one of its sellers signed,
// as of a time.
func OpenSale(der []byte, trust *identity.Trust, at time.Time) (Sale, error) {
	return NewOpener(trust, 0).Sale(der, at)
}

// Bundle verifies a bundle that its user signed, as of a time.
func (o *Opener) Bundle(der []byte, at time.Time) (Verified, error) {
	key := tail(der)
	k, remembered := o.known.Recall(key)
	remembered = remembered && bytes.Equal(k.der, der)
	var user identity.Peer
	var err error
	if remembered {
		user, err = o.trust.Verify(k.chain, at)
	} else {
		// The caller may change der later, but not the remembered copy.
		k, user, err = readBundle(slices.Clip(bytes.Clone(der)), o.trust, at)
	}
	if err != nil {
		return Verified{}, fmt.Errorf("bundle: %w", err)
	}
	if !remembered && len(k.der) <= maxRemembered {
		o.known.Remember(key, k)
	}
	b := k.bundle
	b.Units = slices.Clone(b.Units) // the remembered ones must not change
	return Verified{ID: k.id, Bundle: b, User: user, Signed: k.signed, DER: k.der, checked: true}, nil
}

// PastBundle is Bundle for one that was decided before, which the caller knows by its ID: its user's
// certificate may have ended or been revoked since, but was valid once.
func (o *Opener) PastBundle(der []byte, at time.Time) (Verified, error) {
	v, err := o.Bundle(der, at)
	if err == nil {
		return v, nil
	}
	s, e := parse(der)
	if e != nil {
		return v, err
	}
	leaf, e1 := x509.ParseCertificate(s.chain[0])
	b, e2 := Decode(s.octets)
	if e1 != nil || e2 != nil {
		return v, err
	}
	for _, past := range []time.Time{leaf.NotBefore, b.SettleBy} {
		if v, e := o.Bundle(der, past); e == nil && past.Before(at) {
			return v, nil
		}
	}
	return v, err
}

// Sale verifies both layers of a bundle that its user and one of its sellers signed, as of a time.
func (o *Opener) Sale(der []byte, at time.Time) (Sale, error) {
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
	return Sale{Verified: v, Seller: seller, Countersigned: k.countersigned, DER: k.der}, nil
}

func (o *Opener) outer(der []byte, at time.Time) (knownSale, identity.Peer, error) {
	key := tail(der)
	if k, ok := o.sales.Recall(key); ok && bytes.Equal(k.der, der) {
		seller, err := o.trust.Verify(k.chain, at)
		return k, seller, err
	}
	s, seller, countersigned, err := unseal(slices.Clip(bytes.Clone(der)), o.trust, at)
	k := knownSale{der: s.der, chain: s.chain, countersigned: countersigned, bundle: s.octets}
	if err == nil && len(k.der) <= maxRemembered {
		o.sales.Remember(key, k)
	}
	return k, seller, err
}

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
	return known{der: s.der, chain: s.chain, signed: signed, id: ID(s.octets), bundle: b}, user, nil
}

// unseal verifies a SignedData: first the signer's chain, which is usually remembered and
// stops strangers, then the signature. The result is pruned.
func unseal(der []byte, trust *identity.Trust, at time.Time) (s sealed, by identity.Peer, signed time.Time, err error) {
	if s, err = parse(der); err != nil {
		return s, by, signed, err
	}
	if by, err = trust.Verify(s.chain, at); err != nil {
		return s, by, signed, err
	}
	if signed, err = s.verify(by.Chain[0]); err == nil {
		err = s.prune(by.Chain)
	}
	return s, by, signed, err
}

// Content is the content of a SignedData: the octets of a document, or the user's
// SignedData in a sale. It checks only the form. Use it for own records, which were
// verified before they were stored.
func Content(der []byte) ([]byte, error) {
	s, err := parse(der)
	return bytes.Clone(s.octets), err
}
