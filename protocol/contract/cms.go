package contract

import (
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
)

// cmsVersion is the version of SignedData and of SignerInfo for plain data and
// signers named by issuer and serial.
const cmsVersion = 1

// objectID is an object identifier: the content octets of its DER, which are unique.
type objectID string

// The object identifiers of RFC 5652, RFC 8017, RFC 5754 and RFC 5758 that are used.
const (
	oidData            objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01" // 1.2.840.113549.1.7.1
	oidSignedData      objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02" // 1.2.840.113549.1.7.2
	oidContentType     objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03" // 1.2.840.113549.1.9.3
	oidMessageDigest   objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04" // 1.2.840.113549.1.9.4
	oidSigningTime     objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05" // 1.2.840.113549.1.9.5
	oidRSA             objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01" // 1.2.840.113549.1.1.1
	oidRSAWithSHA256   objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b" // 1.2.840.113549.1.1.11
	oidRSAWithSHA384   objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c" // 1.2.840.113549.1.1.12
	oidRSAWithSHA512   objectID = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d" // 1.2.840.113549.1.1.13
	oidECDSAWithSHA256 objectID = "\x2a\x86\x48\xce\x3d\x04\x03\x02"     // 1.2.840.10045.4.3.2
	oidECDSAWithSHA384 objectID = "\x2a\x86\x48\xce\x3d\x04\x03\x03"     // 1.2.840.10045.4.3.3
	oidECDSAWithSHA512 objectID = "\x2a\x86\x48\xce\x3d\x04\x03\x04"     // 1.2.840.10045.4.3.4
	oidSHA256          objectID = "\x60\x86\x48\x01\x65\x03\x04\x02\x01" // 2.16.840.1.101.3.4.2.1
	oidSHA384          objectID = "\x60\x86\x48\x01\x65\x03\x04\x02\x02" // 2.16.840.1.101.3.4.2.2
	oidSHA512          objectID = "\x60\x86\x48\x01\x65\x03\x04\x02\x03" // 2.16.840.1.101.3.4.2.3
)

// knownObjects are well formed without a check.
var knownObjects = [...]objectID{
	oidData, oidSignedData, oidContentType, oidMessageDigest, oidSigningTime, oidSHA256, oidECDSAWithSHA256,
	oidRSA, oidRSAWithSHA256, oidRSAWithSHA384, oidRSAWithSHA512, oidECDSAWithSHA384, oidECDSAWithSHA512, oidSHA384, oidSHA512,
}

// String is the numbers, separated by dots.
func (id objectID) String() string {
	var w writer
	w.object(id)
	var numbers asn1.ObjectIdentifier
	if _, err := asn1.Unmarshal(w.bytes(), &numbers); err != nil {
		return fmt.Sprintf("%x", string(id))
	}
	return numbers.String()
}

type algorithm struct {
	hash               crypto.Hash
	digest, ecdsa, rsa objectID
	withECDSA, withRSA x509.SignatureAlgorithm
}

func algorithms() [3]algorithm {
	return [...]algorithm{
		usual(),
		{crypto.SHA384, oidSHA384, oidECDSAWithSHA384, oidRSAWithSHA384, x509.ECDSAWithSHA384, x509.SHA384WithRSA},
		{crypto.SHA512, oidSHA512, oidECDSAWithSHA512, oidRSAWithSHA512, x509.ECDSAWithSHA512, x509.SHA512WithRSA},
	}
}

// usual is the algorithm for new signatures.
func usual() algorithm {
	return algorithm{crypto.SHA256, oidSHA256, oidECDSAWithSHA256, oidRSAWithSHA256, x509.ECDSAWithSHA256, x509.SHA256WithRSA}
}
