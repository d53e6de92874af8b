package contract

import (
	"crypto"
	"crypto/x509"
	"encoding/asn1"
)

// cmsVersion is the version of SignedData and of SignerInfo for plain data and
// signers named by issuer and serial.
const cmsVersion = 1

func oidData() asn1.ObjectIdentifier        { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1} }
func oidSignedData() asn1.ObjectIdentifier  { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2} }
func oidContentType() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3} }
func oidMessageDigest() asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
}
func oidSigningTime() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 5} }
func oidRSA() asn1.ObjectIdentifier         { return asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1} }

// algorithm is a way to hash and sign.
type algorithm struct {
	hash               crypto.Hash
	digest, ecdsa, rsa asn1.ObjectIdentifier
	withECDSA, withRSA x509.SignatureAlgorithm
}

// algorithms are the accepted ones.
func algorithms() [3]algorithm {
	return [...]algorithm{usual(), {
		crypto.SHA384, asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2},
		asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 3}, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 12},
		x509.ECDSAWithSHA384, x509.SHA384WithRSA,
	}, {
		crypto.SHA512, asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3},
		asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 4}, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 13},
		x509.ECDSAWithSHA512, x509.SHA512WithRSA,
	}}
}

// usual is the one used here to sign.
func usual() algorithm {
	return algorithm{
		crypto.SHA256, asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1},
		asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11},
		x509.ECDSAWithSHA256, x509.SHA256WithRSA,
	}
}
