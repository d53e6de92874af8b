package contract

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// unsealed is what a SignedData with a good signature says.
type unsealed struct {
	octets []byte
	chain  [][]byte  // DER, the signer's certificate first
	signed time.Time // what the signer says; zero if it says nothing
}

// unseal reads a SignedData and verifies its signature, but not who the signer
// is: DER, exactly one signer, content inside, nothing unsigned beside it.
func unseal(der []byte) (unsealed, error) {
	sd, err := parseSignedData(der)
	if err != nil {
		return unsealed{}, err
	}
	info := sd.Signers[0]
	chain, leaf, err := signerChain(sd.Certificates, info.Issuer)
	if err != nil {
		return unsealed{}, err
	}
	hash, algorithm, err := algorithmOf(info, leaf)
	if err != nil {
		return unsealed{}, err
	}
	signed, err := checkAttributes(info.Attributes, hash, sd.Encapsulated.Content)
	if err != nil {
		return unsealed{}, err
	}
	set, err := asn1.MarshalWithParams(info.Attributes, "set")
	if err != nil {
		return unsealed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := leaf.CheckSignature(algorithm, set, info.Signature); err != nil {
		return unsealed{}, fmt.Errorf("by %q: %w: %w", leaf.Subject, ErrSignature, err)
	}
	return unsealed{octets: sd.Encapsulated.Content, chain: chain, signed: signed}, nil
}

// parseSignedData refuses everything that it would not write itself in the same
// bytes, except for what a signer may choose: certificates, algorithms and
// further signed attributes.
func parseSignedData(der []byte) (signedData, error) {
	if len(der) > protocol.MaxSignature {
		return signedData{}, fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrMalformed)
	}
	var info contentInfo
	if _, err := asn1.Unmarshal(der, &info); err != nil {
		return signedData{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	// encoding/asn1 lets a sequence have more members than were asked for.
	again, err := asn1.Marshal(info)
	if err != nil || !bytes.Equal(again, der) {
		return signedData{}, fmt.Errorf("%w: not SignedData in DER as it is written here", ErrMalformed)
	}
	return info.Content, checkShape(info)
}

func checkShape(info contentInfo) error {
	sd := info.Content
	switch {
	case !info.Type.Equal(oidSignedData()):
		return fmt.Errorf("%w: content type %s, want SignedData", ErrMalformed, info.Type)
	case !sd.Encapsulated.Type.Equal(oidData()):
		return fmt.Errorf("%w: signed content is of type %s, want data", ErrMalformed, sd.Encapsulated.Type)
	case sd.Encapsulated.Content == nil:
		return fmt.Errorf("%w: the content is detached", ErrMalformed)
	case len(sd.Signers) != 1:
		return fmt.Errorf("%w: %d signers, want exactly one", ErrMalformed, len(sd.Signers))
	case sd.Version != signedDataVersion || sd.Signers[0].Version != signedDataVersion:
		return fmt.Errorf("%w: versions %d and %d, want %d", ErrMalformed, sd.Version, sd.Signers[0].Version, signedDataVersion)
	case len(sd.Digests) != 1 || !sd.Digests[0].Algorithm.Equal(sd.Signers[0].Digest.Algorithm):
		return fmt.Errorf("%w: digest algorithms are not the signer's", ErrMalformed)
	case len(sd.Certificates) < 1 || len(sd.Certificates) > identity.MaxChain:
		return fmt.Errorf("%w: %d certificates, want 1..%d", ErrMalformed, len(sd.Certificates), identity.MaxChain)
	}
	return nil
}

// signerChain finds the one certificate that the signer is named by, and puts it
// before the others.
func signerChain(certificates []asn1.RawValue, by issuerAndSerial) ([][]byte, *x509.Certificate, error) {
	var leaf *x509.Certificate
	var others [][]byte
	for _, raw := range certificates {
		cert, err := x509.ParseCertificate(raw.FullBytes)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: certificate: %w", ErrMalformed, err)
		}
		match := bytes.Equal(cert.RawIssuer, by.Name.FullBytes) && cert.SerialNumber.Cmp(by.Serial) == 0
		switch {
		case match && leaf != nil:
			return nil, nil, fmt.Errorf("%w: two certificates with the signer's issuer and serial", ErrMalformed)
		case match:
			leaf = cert
		default:
			others = append(others, raw.FullBytes)
		}
	}
	if leaf == nil {
		return nil, nil, fmt.Errorf("%w: the signer's certificate is not there", ErrMalformed)
	}
	return append([][]byte{leaf.Raw}, others...), leaf, nil
}

// algorithmOf is how the signer hashed and signed; only what fits its key counts.
func algorithmOf(info signerInfo, leaf *x509.Certificate) (crypto.Hash, x509.SignatureAlgorithm, error) {
	var isEC, isRSA bool
	switch leaf.PublicKey.(type) {
	case *ecdsa.PublicKey:
		isEC = true
	case *rsa.PublicKey:
		isRSA = true
	}
	for _, a := range []struct {
		hash    crypto.Hash
		digest  asn1.ObjectIdentifier
		ec      asn1.ObjectIdentifier
		withEC  x509.SignatureAlgorithm
		rsa     asn1.ObjectIdentifier
		withRSA x509.SignatureAlgorithm
	}{
		{crypto.SHA256, oidSHA256(), oidECDSA256(), x509.ECDSAWithSHA256, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, x509.SHA256WithRSA},
		{crypto.SHA384, oidSHA384(), oidECDSA384(), x509.ECDSAWithSHA384, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 12}, x509.SHA384WithRSA},
		{crypto.SHA512, oidSHA512(), oidECDSA512(), x509.ECDSAWithSHA512, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 13}, x509.SHA512WithRSA},
	} {
		signed := info.Algorithm.Algorithm
		switch {
		case !info.Digest.Algorithm.Equal(a.digest):
		case isEC && signed.Equal(a.ec):
			return a.hash, a.withEC, nil
		case isRSA && (signed.Equal(oidRSA()) || signed.Equal(a.rsa)):
			return a.hash, a.withRSA, nil
		}
	}
	return 0, 0, fmt.Errorf("digest %s and signature %s with a key of type %T: %w",
		info.Digest.Algorithm, info.Algorithm.Algorithm, leaf.PublicKey, identity.ErrWeak)
}

// checkAttributes holds that the signature is over this content. No attribute
// may come twice; the signing time is the signer's own word and may be missing.
func checkAttributes(attributes []attribute, hash crypto.Hash, content []byte) (signed time.Time, err error) {
	values := map[string]asn1.RawValue{}
	for _, a := range attributes {
		if _, double := values[a.Type.String()]; double || len(a.Values) != 1 {
			return signed, fmt.Errorf("%w: signed attribute %s: want one value, once", ErrMalformed, a.Type)
		}
		values[a.Type.String()] = a.Values[0]
	}
	var contentType asn1.ObjectIdentifier
	if err := unmarshalAll(values[oidContentType().String()].FullBytes, &contentType); err != nil || !contentType.Equal(oidData()) {
		return signed, fmt.Errorf("%w: signed content type is not data", ErrMalformed)
	}
	h := hash.New()
	h.Write(content)
	var digest []byte
	if err := unmarshalAll(values[oidMessageDigest().String()].FullBytes, &digest); err != nil || !bytes.Equal(digest, h.Sum(nil)) {
		return signed, fmt.Errorf("%w: the signed digest is not the content's", ErrSignature)
	}
	if v, ok := values[oidSigningTime().String()]; ok {
		if err := unmarshalAll(v.FullBytes, &signed); err != nil {
			return signed, fmt.Errorf("%w: signing time: %w", ErrMalformed, err)
		}
	}
	return signed, nil
}

func unmarshalAll(der []byte, value any) error {
	rest, err := asn1.Unmarshal(der, value)
	if err == nil && len(rest) > 0 {
		return fmt.Errorf("%d trailing bytes", len(rest))
	}
	return err
}
