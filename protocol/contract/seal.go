package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// seal signs octets as SignedData (RFC 5652) in DER. now becomes the signing
// time, in whole seconds.
func seal(c *identity.Credential, octets []byte, now time.Time) ([]byte, error) {
	signer, err := signAs(c, octets, now)
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", c.ID, err)
	}
	data := value(tagSequence,
		value(tagInteger, []byte{cmsVersion}),
		value(tagSet, identifier(usual().digest, nil)),
		value(tagSequence, object(oidData), value(tagContext0, value(tagOctets, octets))),
		value(tagContext0, certificateSet(c.Chain)...),
		value(tagSet, signer))
	der := value(tagSequence, object(oidSignedData), value(tagContext0, data))
	if len(der) > protocol.MaxSignature {
		return nil, fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrTerms)
	}
	return der, nil
}

// signAs is a SignerInfo with a signature.
func signAs(c *identity.Credential, octets []byte, now time.Time) ([]byte, error) {
	a, leaf := usual(), c.Chain[0]
	sign, err := signatureAlgorithm(a, leaf)
	if err != nil {
		return nil, err
	}
	attributes, err := signedAttributes(a, octets, now)
	if err != nil {
		return nil, err
	}
	// What is signed is the set itself; in the message it has another tag.
	signature, err := c.Signer().Sign(nil, a.sum(value(tagSet, attributes...)), a.hash)
	if err != nil {
		return nil, err
	}
	return value(tagSequence,
		value(tagInteger, []byte{cmsVersion}),
		value(tagSequence, leaf.RawIssuer, integer(leaf.SerialNumber)),
		identifier(a.digest, nil),
		value(tagContext0, attributes...),
		sign,
		value(tagOctets, signature)), nil
}

func (a algorithm) sum(b []byte) []byte {
	h := a.hash.New()
	h.Write(b)
	return h.Sum(nil)
}

// signatureAlgorithm names what OpenSSL names: for RSA the kind of key only.
func signatureAlgorithm(a algorithm, leaf *x509.Certificate) ([]byte, error) {
	switch leaf.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return identifier(a.ecdsa, nil), nil
	case *rsa.PublicKey:
		return identifier(oidRSA, []byte{tagNull, 0}), nil
	}
	return nil, fmt.Errorf("key of type %T: %w", leaf.PublicKey, identity.ErrWeak)
}

// signedAttributes come in the order that DER wants of a set.
func signedAttributes(a algorithm, octets []byte, now time.Time) ([][]byte, error) {
	signed, err := asn1.Marshal(now.UTC().Truncate(time.Second))
	if err != nil {
		return nil, err
	}
	return [][]byte{
		attribute(oidContentType, object(oidData)),
		attribute(oidSigningTime, signed),
		attribute(oidMessageDigest, value(tagOctets, a.sum(octets))),
	}, nil
}

func attribute(id objectID, v []byte) []byte {
	return value(tagSequence, object(id), value(tagSet, v))
}

// certificateSet is a chain in the order that DER wants of a set.
func certificateSet(chain []*x509.Certificate) [][]byte {
	set := make([][]byte, len(chain))
	for i, cert := range chain {
		set[i] = cert.Raw
	}
	slices.SortFunc(set, bytes.Compare)
	return set
}
