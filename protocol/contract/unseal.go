package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"math/big"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// sealed is a SignedData that was read. Nothing about it is verified.
type sealed struct {
	octets []byte
	chain  [][]byte // certificates in DER, the signer's first
	signer signerInfo
}

// parse reads a SignedData: DER, exactly one signer, content inside, nothing
// unsigned beside it. What it returns shares memory with der.
//
// It refuses everything that would not be written here in the same bytes, except
// for what a signer may choose: certificates, algorithms, further signed
// attributes.
func parse(der []byte) (sealed, error) {
	if len(der) > protocol.MaxSignature {
		return sealed{}, fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrMalformed)
	}
	var info contentInfo
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return sealed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	// encoding/asn1 lets a sequence have more members than were asked for.
	again, err := asn1.Marshal(info)
	if err != nil || !bytes.Equal(again, der) {
		return sealed{}, fmt.Errorf("%w: not SignedData in DER as it is written here", ErrMalformed)
	}
	if err := checkShape(info); err != nil {
		return sealed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	sd := info.Content
	chain, err := signerFirst(sd.Certificates, sd.Signers[0].Issuer)
	if err != nil {
		return sealed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return sealed{octets: sd.Encapsulated.Content, chain: chain, signer: sd.Signers[0]}, nil
}

func checkShape(info contentInfo) error {
	sd := info.Content
	switch {
	case !info.Type.Equal(oidSignedData()):
		return fmt.Errorf("content type %s, want SignedData", info.Type)
	case !sd.Encapsulated.Type.Equal(oidData()):
		return fmt.Errorf("signed content is of type %s, want data", sd.Encapsulated.Type)
	case len(sd.Encapsulated.Content) == 0:
		return fmt.Errorf("the content is empty or detached")
	case len(sd.Signers) != 1:
		return fmt.Errorf("%d signers, want exactly one", len(sd.Signers))
	case sd.Version != cmsVersion || sd.Signers[0].Version != cmsVersion:
		return fmt.Errorf("versions %d and %d, want %d", sd.Version, sd.Signers[0].Version, cmsVersion)
	case len(sd.Digests) != 1 || !sd.Digests[0].Algorithm.Equal(sd.Signers[0].Digest.Algorithm):
		return fmt.Errorf("digest algorithms are not the signer's")
	case len(sd.Certificates) < 1 || len(sd.Certificates) > identity.MaxChain:
		return fmt.Errorf("%d certificates, want 1..%d", len(sd.Certificates), identity.MaxChain)
	}
	return nil
}

// signerFirst puts the certificate that the signer is named by before the others.
func signerFirst(certificates []asn1.RawValue, by issuerAndSerial) ([][]byte, error) {
	chain := [][]byte{nil}
	for _, raw := range certificates {
		var c certificate
		if _, err := asn1.Unmarshal(raw.FullBytes, &c); err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		named := bytes.Equal(c.Body.Issuer.FullBytes, by.Name.FullBytes) && c.Body.Serial.Cmp(by.Serial) == 0
		switch {
		case named && chain[0] != nil:
			return nil, fmt.Errorf("two certificates with the signer's issuer and serial")
		case named:
			chain[0] = raw.FullBytes
		default:
			chain = append(chain, raw.FullBytes)
		}
	}
	if chain[0] == nil {
		return nil, fmt.Errorf("the signer's certificate is not there")
	}
	return chain, nil
}

// certificate is as much of a certificate as tells whose it is: crypto/x509 reads
// all of it, but once per certificate and not once per signature.
type certificate struct {
	Body struct {
		Version   int `asn1:"optional,explicit,default:0,tag:0"`
		Serial    *big.Int
		Algorithm asn1.RawValue
		Issuer    asn1.RawValue
	}
}

// verify checks the signature with the certificate of the signer, whose chain the
// caller has verified. It returns the signing time, which is the signer's own
// word and zero if missing.
func (s sealed) verify(leaf *x509.Certificate) (time.Time, error) {
	if !bytes.Equal(leaf.RawIssuer, s.signer.Issuer.Name.FullBytes) || leaf.SerialNumber.Cmp(s.signer.Issuer.Serial) != 0 {
		return time.Time{}, fmt.Errorf("%w: the signer is named by another certificate than its own", ErrMalformed)
	}
	a, signature, err := algorithmOf(s.signer, leaf)
	if err != nil {
		return time.Time{}, err
	}
	signed, err := checkAttributes(s.signer.Attributes, a, s.octets)
	if err != nil {
		return time.Time{}, err
	}
	set, err := asn1.MarshalWithParams(s.signer.Attributes, "set")
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := leaf.CheckSignature(signature, set, s.signer.Signature); err != nil {
		return time.Time{}, fmt.Errorf("by %q: %w: %w", leaf.Subject, ErrSignature, err)
	}
	return signed, nil
}

// algorithmOf is how the signer hashed and signed; only what fits its key counts.
func algorithmOf(s signerInfo, leaf *x509.Certificate) (algorithm, x509.SignatureAlgorithm, error) {
	_, isEC := leaf.PublicKey.(*ecdsa.PublicKey)
	_, isRSA := leaf.PublicKey.(*rsa.PublicKey)
	for _, a := range algorithms() {
		signed := s.Algorithm.Algorithm
		switch {
		case !s.Digest.Algorithm.Equal(a.digest):
		case isEC && signed.Equal(a.ecdsa):
			return a, a.withECDSA, nil
		case isRSA && (signed.Equal(oidRSA()) || signed.Equal(a.rsa)):
			return a, a.withRSA, nil
		}
	}
	return algorithm{}, 0, fmt.Errorf("digest %s and signature %s with a key of type %T: %w",
		s.Digest.Algorithm, s.Algorithm.Algorithm, leaf.PublicKey, identity.ErrWeak)
}

// checkAttributes holds that the signed attributes are of this content, each of
// one value and once.
func checkAttributes(attributes []attribute, a algorithm, content []byte) (signed time.Time, err error) {
	values := map[string][]byte{}
	for _, v := range attributes {
		if _, double := values[v.Type.String()]; double || len(v.Values) != 1 {
			return signed, fmt.Errorf("%w: signed attribute %s: want one value, once", ErrMalformed, v.Type)
		}
		values[v.Type.String()] = v.Values[0].FullBytes
	}
	var contentType asn1.ObjectIdentifier
	if err := unmarshal(values[oidContentType().String()], &contentType); err != nil || !contentType.Equal(oidData()) {
		return signed, fmt.Errorf("%w: signed content type is not data", ErrMalformed)
	}
	var digest []byte
	if err := unmarshal(values[oidMessageDigest().String()], &digest); err != nil || !bytes.Equal(digest, a.sum(content)) {
		return signed, fmt.Errorf("%w: the signed digest is not the content's", ErrSignature)
	}
	if der, ok := values[oidSigningTime().String()]; ok {
		if err := unmarshal(der, &signed); err != nil {
			return signed, fmt.Errorf("%w: signing time: %w", ErrMalformed, err)
		}
	}
	return signed, nil
}

// unmarshal reads one value and nothing after it.
func unmarshal(der []byte, value any) error {
	rest, err := asn1.Unmarshal(der, value)
	if err == nil && len(rest) > 0 {
		return fmt.Errorf("%d trailing bytes", len(rest))
	}
	return err
}
