package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// utcTime is the usual form of a time in DER.
const utcTime = "060102150405Z"

// usualSignature is the size of a SignedData with two certificates, without its octets, in bytes.
const usualSignature = 2 << 10

// seal signs octets as SignedData (RFC 5652) in DER. now becomes the signing
// time, in whole seconds.
func seal(c *identity.Credential, octets []byte, now time.Time) ([]byte, error) {
	a, attributes, signature, err := signAs(c, octets, now)
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", c.ID, err)
	}
	w := writer{free: make([]byte, len(octets)+usualSignature)}
	w.signedData(func() {
		w.value(tagSet, func() { w.signerInfo(c, a, attributes, signature) })
		w.certificates(c.ChainDER())
		w.value(tagSequence, func() {
			w.value(tagContext0, func() { w.octets(tagOctets, octets) })
			w.object(oidData)
		})
		w.value(tagSet, func() { w.algorithm(a.digest) })
		w.octets(tagInteger, []byte{cmsVersion})
	})
	if n := len(w.bytes()); n > protocol.MaxSignature {
		return nil, fmt.Errorf("signed document of %d bytes, at most %d: %w", n, protocol.MaxSignature, ErrTerms)
	}
	return w.bytes(), nil
}

// signAs signs octets. The signature is of the set of attributes.
func signAs(c *identity.Credential, octets []byte, now time.Time) (a algorithm, attributes, signature []byte, err error) {
	a = usual()
	switch key := c.Chain[0].PublicKey.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
	default:
		return a, nil, nil, fmt.Errorf("key of type %T: %w", key, identity.ErrWeak)
	}
	var w writer
	w.value(tagSet, func() { w.attributes(a, octets, now) })
	signature, err = c.Signer().Sign(nil, a.sum(w.bytes()), a.hash)
	return a, w.bytes(), signature, err
}

func (a algorithm) sum(b []byte) []byte {
	h := a.hash.New()
	h.Write(b)
	return h.Sum(nil)
}

func (w *writer) signerInfo(c *identity.Credential, a algorithm, attributes, signature []byte) {
	leaf := c.Chain[0]
	w.value(tagSequence, func() {
		w.octets(tagOctets, signature)
		if _, isRSA := leaf.PublicKey.(*rsa.PublicKey); isRSA { // like OpenSSL: only the kind of key, with NULL as parameters
			w.value(tagSequence, func() {
				w.octets(tagNull, nil)
				w.object(oidRSA)
			})
		} else {
			w.algorithm(a.ecdsa)
		}
		w.raw(attributes[1:])
		w.raw([]byte{tagContext0}) // the signature is of the set itself, under its own tag
		w.algorithm(a.digest)
		w.value(tagSequence, func() {
			w.integer(leaf.SerialNumber)
			w.raw(leaf.RawIssuer)
		})
		w.octets(tagInteger, []byte{cmsVersion})
	})
}

// attributes writes the signed attributes, in the order of a DER set.
func (w *writer) attributes(a algorithm, octets []byte, now time.Time) {
	w.attribute(oidMessageDigest, func() { w.octets(tagOctets, a.sum(octets)) })
	w.attribute(oidSigningTime, func() { w.time(now) })
	w.attribute(oidContentType, func() { w.object(oidData) })
}

func (w *writer) attribute(id objectID, value func()) {
	w.value(tagSequence, func() {
		w.value(tagSet, value)
		w.object(id)
	})
}

// algorithm writes an AlgorithmIdentifier without parameters.
func (w *writer) algorithm(id objectID) { w.value(tagSequence, func() { w.object(id) }) }

func (w *writer) signedData(members func()) {
	w.value(tagSequence, func() {
		w.value(tagContext0, func() { w.value(tagSequence, members) })
		w.object(oidSignedData)
	})
}

// certificates writes a chain, in the order of a DER set.
func (w *writer) certificates(chain [][]byte) {
	slices.SortFunc(chain, bytes.Compare)
	w.value(tagContext0, func() {
		for _, der := range slices.Backward(chain) {
			w.raw(der)
		}
	})
}
