package contract

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// The shapes of RFC 5652 that are written and read here, and no others.
type contentInfo struct {
	Type    asn1.ObjectIdentifier
	Content signedData `asn1:"explicit,tag:0"`
}

type signedData struct {
	Version      int
	Digests      []pkix.AlgorithmIdentifier `asn1:"set"`
	Encapsulated encapsulated
	Certificates []asn1.RawValue `asn1:"tag:0,set,optional"`
	Signers      []signerInfo    `asn1:"set"`
}

type encapsulated struct {
	Type    asn1.ObjectIdentifier
	Content []byte `asn1:"explicit,optional,tag:0"`
}

type signerInfo struct {
	Version    int
	Issuer     issuerAndSerial
	Digest     pkix.AlgorithmIdentifier
	Attributes []attribute `asn1:"tag:0,set"`
	Algorithm  pkix.AlgorithmIdentifier
	Signature  []byte
}

type issuerAndSerial struct {
	Name   asn1.RawValue
	Serial *big.Int
}

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// signedDataVersion is the version of SignedData and of SignerInfo for plain
// data and signers named by issuer and serial.
const signedDataVersion = 1

func oidSignedData() asn1.ObjectIdentifier  { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2} }
func oidData() asn1.ObjectIdentifier        { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1} }
func oidContentType() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3} }
func oidMessageDigest() asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
}
func oidSigningTime() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 5} }
func oidSHA256() asn1.ObjectIdentifier      { return asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1} }
func oidSHA384() asn1.ObjectIdentifier      { return asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2} }
func oidSHA512() asn1.ObjectIdentifier      { return asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3} }
func oidRSA() asn1.ObjectIdentifier         { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1} }
func oidECDSA256() asn1.ObjectIdentifier    { return asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2} }
func oidECDSA384() asn1.ObjectIdentifier    { return asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 3} }
func oidECDSA512() asn1.ObjectIdentifier    { return asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 4} }

// seal signs octets as SignedData in DER. now becomes the signing time, in whole
// seconds.
func seal(c *identity.Credential, octets []byte, now time.Time) ([]byte, error) {
	algorithm, err := algorithmFor(c.Chain[0])
	if err != nil {
		return nil, err
	}
	attributes, err := signedAttributes(octets, now)
	if err != nil {
		return nil, err
	}
	signed, err := asn1.MarshalWithParams(attributes, "set")
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(signed)
	signature, err := c.Signer().Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign as %s: %w", c.ID, err)
	}
	leaf := c.Chain[0]
	sha := pkix.AlgorithmIdentifier{Algorithm: oidSHA256()}
	info := signerInfo{
		Version: signedDataVersion, Digest: sha, Attributes: attributes, Algorithm: algorithm, Signature: signature,
		Issuer: issuerAndSerial{Name: asn1.RawValue{FullBytes: leaf.RawIssuer}, Serial: leaf.SerialNumber},
	}
	der, err := asn1.Marshal(contentInfo{Type: oidSignedData(), Content: signedData{
		Version: signedDataVersion, Digests: []pkix.AlgorithmIdentifier{sha},
		Encapsulated: encapsulated{Type: oidData(), Content: octets},
		Certificates: rawCertificates(c.Chain), Signers: []signerInfo{info},
	}})
	if err != nil {
		return nil, err
	}
	if len(der) > protocol.MaxSignature {
		return nil, fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrTerms)
	}
	return der, nil
}

func algorithmFor(leaf *x509.Certificate) (pkix.AlgorithmIdentifier, error) {
	switch leaf.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return pkix.AlgorithmIdentifier{Algorithm: oidECDSA256()}, nil
	case *rsa.PublicKey:
		return pkix.AlgorithmIdentifier{Algorithm: oidRSA(), Parameters: asn1.NullRawValue}, nil
	}
	return pkix.AlgorithmIdentifier{}, fmt.Errorf("sign with a key of type %T: %w", leaf.PublicKey, identity.ErrWeak)
}

// signedAttributes are in the order that DER wants of a set.
func signedAttributes(octets []byte, now time.Time) ([]attribute, error) {
	digest := sha256.Sum256(octets)
	var attributes []attribute
	for _, a := range []struct {
		oid   asn1.ObjectIdentifier
		value any
	}{
		{oidContentType(), oidData()},
		{oidSigningTime(), now.UTC().Truncate(time.Second)},
		{oidMessageDigest(), digest[:]},
	} {
		value, err := asn1.Marshal(a.value)
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, attribute{Type: a.oid, Values: []asn1.RawValue{{FullBytes: value}}})
	}
	return attributes, nil
}

func rawCertificates(chain []*x509.Certificate) []asn1.RawValue {
	raw := make([]asn1.RawValue, len(chain))
	for i, cert := range chain {
		raw[i] = asn1.RawValue{FullBytes: cert.Raw}
	}
	slices.SortFunc(raw, func(a, b asn1.RawValue) int { return bytes.Compare(a.FullBytes, b.FullBytes) })
	return raw
}
