package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// builder writes DER. Continuations write the content of a value.
type builder = cryptobyte.Builder

// usualSignature is the size of a SignedData with two certificates, without its octets,
// in bytes.
const usualSignature = 2 << 10

// seal signs octets as SignedData (RFC 5652) in DER. now becomes the signing
// time, in whole seconds.
func seal(c *identity.Credential, octets []byte, now time.Time) ([]byte, error) {
	signer, err := signAs(c, octets, now)
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", c.ID, err)
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, len(octets)+usualSignature))
	addSignedData(b, func(b *builder) {
		b.AddASN1Int64(cmsVersion)
		b.AddASN1(tagSet, func(b *builder) { addAlgorithm(b, usual().digest) })
		b.AddASN1(tagSequence, func(b *builder) {
			addObject(b, oidData)
			b.AddASN1(tagContext0, func(b *builder) { b.AddASN1OctetString(octets) })
		})
		addCertificates(b, c.ChainDER())
		b.AddASN1(tagSet, signer)
	})
	der, err := b.Bytes()
	if err == nil && len(der) > protocol.MaxSignature {
		err = fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrTerms)
	}
	if err != nil {
		return nil, err
	}
	return der, nil
}

// signAs signs octets and returns the function that writes the SignerInfo.
func signAs(c *identity.Credential, octets []byte, now time.Time) (cryptobyte.BuilderContinuation, error) {
	a, leaf := usual(), c.Chain[0]
	_, isRSA := leaf.PublicKey.(*rsa.PublicKey)
	if _, isEC := leaf.PublicKey.(*ecdsa.PublicKey); !isEC && !isRSA {
		return nil, fmt.Errorf("key of type %T: %w", leaf.PublicKey, identity.ErrWeak)
	}
	var set builder
	set.AddASN1(tagSet, func(b *builder) { addAttributes(b, a, octets, now) })
	attributes, err := set.Bytes()
	if err != nil {
		return nil, err
	}
	signature, err := c.Signer().Sign(nil, a.sum(attributes), a.hash)
	if err != nil {
		return nil, err
	}
	return func(b *builder) {
		b.AddASN1(tagSequence, func(b *builder) {
			b.AddASN1Int64(cmsVersion)
			b.AddASN1(tagSequence, func(b *builder) {
				b.AddBytes(leaf.RawIssuer)
				b.AddASN1BigInt(leaf.SerialNumber)
			})
			addAlgorithm(b, a.digest)
			b.AddUint8(tagContext0) // the signature is of the set itself, under its own tag
			b.AddBytes(attributes[1:])
			if isRSA { // like OpenSSL: only the kind of key, with NULL as parameters
				b.AddASN1(tagSequence, func(b *builder) {
					addObject(b, oidRSA)
					b.AddASN1NULL()
				})
			} else {
				addAlgorithm(b, a.ecdsa)
			}
			b.AddASN1OctetString(signature)
		})
	}, nil
}

func (a algorithm) sum(b []byte) []byte {
	h := a.hash.New()
	h.Write(b)
	return h.Sum(nil)
}

// addAttributes writes the signed attributes, in the order of a DER set.
func addAttributes(b *builder, a algorithm, octets []byte, now time.Time) {
	addAttribute(b, oidContentType, func(b *builder) { addObject(b, oidData) })
	addAttribute(b, oidSigningTime, func(b *builder) { b.MarshalASN1(now.UTC().Truncate(time.Second)) })
	addAttribute(b, oidMessageDigest, func(b *builder) { b.AddASN1OctetString(a.sum(octets)) })
}

func addAttribute(b *builder, id objectID, value cryptobyte.BuilderContinuation) {
	b.AddASN1(tagSequence, func(b *builder) {
		addObject(b, id)
		b.AddASN1(tagSet, value)
	})
}

// addAlgorithm writes an AlgorithmIdentifier without parameters.
func addAlgorithm(b *builder, id objectID) {
	b.AddASN1(tagSequence, func(b *builder) { addObject(b, id) })
}

func addObject(b *builder, id objectID) {
	b.AddASN1(tagOID, func(b *builder) { b.AddBytes([]byte(id)) })
}

// addSignedData writes a SignedData around its members.
func addSignedData(b *builder, members cryptobyte.BuilderContinuation) {
	b.AddASN1(tagSequence, func(b *builder) {
		addObject(b, oidSignedData)
		b.AddASN1(tagContext0, func(b *builder) { b.AddASN1(tagSequence, members) })
	})
}

// addCertificates writes a chain, in the order of a DER set.
func addCertificates(b *builder, chain [][]byte) {
	b.AddASN1(tagContext0, func(b *builder) {
		for _, der := range slices.SortedFunc(slices.Values(chain), bytes.Compare) {
			b.AddBytes(der)
		}
	})
}
