package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// seal signs octets as SignedData in DER. now becomes the signing time, in whole
// seconds.
func seal(c *identity.Credential, octets []byte, now time.Time) ([]byte, error) {
	signer, err := signAs(c, octets, now)
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", c.ID, err)
	}
	der, err := asn1.Marshal(contentInfo{Type: oidSignedData(), Content: signedData{
		Version:      cmsVersion,
		Digests:      []pkix.AlgorithmIdentifier{signer.Digest},
		Encapsulated: encapsulated{Type: oidData(), Content: octets},
		Certificates: certificateSet(c.Chain),
		Signers:      []signerInfo{signer},
	}})
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", c.ID, err)
	}
	if len(der) > protocol.MaxSignature {
		return nil, fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrTerms)
	}
	return der, nil
}

func signAs(c *identity.Credential, octets []byte, now time.Time) (signerInfo, error) {
	a, leaf := algorithms()[0], c.Chain[0]
	sign, err := signatureAlgorithm(a, leaf)
	if err != nil {
		return signerInfo{}, err
	}
	attributes, err := signedAttributes(a, octets, now)
	if err != nil {
		return signerInfo{}, err
	}
	// What is signed is the set itself; in the message it has another tag.
	set, err := asn1.MarshalWithParams(attributes, "set")
	if err != nil {
		return signerInfo{}, err
	}
	signature, err := c.Signer().Sign(nil, a.sum(set), a.hash)
	if err != nil {
		return signerInfo{}, err
	}
	return signerInfo{
		Version:    cmsVersion,
		Issuer:     issuerAndSerial{Name: asn1.RawValue{FullBytes: leaf.RawIssuer}, Serial: leaf.SerialNumber},
		Digest:     pkix.AlgorithmIdentifier{Algorithm: a.digest},
		Attributes: attributes, Algorithm: sign, Signature: signature,
	}, nil
}

func (a algorithm) sum(b []byte) []byte {
	h := a.hash.New()
	h.Write(b)
	return h.Sum(nil)
}

// signatureAlgorithm names what OpenSSL names: for RSA the kind of key only.
func signatureAlgorithm(a algorithm, leaf *x509.Certificate) (pkix.AlgorithmIdentifier, error) {
	switch leaf.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return pkix.AlgorithmIdentifier{Algorithm: a.ecdsa}, nil
	case *rsa.PublicKey:
		return pkix.AlgorithmIdentifier{Algorithm: oidRSA(), Parameters: asn1.NullRawValue}, nil
	}
	return pkix.AlgorithmIdentifier{}, fmt.Errorf("key of type %T: %w", leaf.PublicKey, identity.ErrWeak)
}

// signedAttributes come in the order that DER wants of a set.
func signedAttributes(a algorithm, octets []byte, now time.Time) ([]attribute, error) {
	var attributes []attribute
	for _, v := range []struct {
		oid   asn1.ObjectIdentifier
		value any
	}{
		{oidContentType(), oidData()},
		{oidSigningTime(), now.UTC().Truncate(time.Second)},
		{oidMessageDigest(), a.sum(octets)},
	} {
		der, err := asn1.Marshal(v.value)
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, attribute{Type: v.oid, Values: []asn1.RawValue{{FullBytes: der}}})
	}
	return attributes, nil
}

// certificateSet is a chain in the order that DER wants of a set.
func certificateSet(chain []*x509.Certificate) []asn1.RawValue {
	set := make([]asn1.RawValue, len(chain))
	for i, cert := range chain {
		set[i] = asn1.RawValue{FullBytes: cert.Raw}
	}
	slices.SortFunc(set, func(a, b asn1.RawValue) int { return bytes.Compare(a.FullBytes, b.FullBytes) })
	return set
}
