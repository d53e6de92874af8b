package identity

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"time"
)

// Usable reports whether an agent may sign with a certificate at a time. It does not
// check the issuer.
func Usable(cert *x509.Certificate, at time.Time) error {
	if err := checkLeaf(cert); err != nil {
		return err
	}
	if _, err := ID(cert); err != nil {
		return err
	}
	return checkTime(cert, at)
}

// Current reports whether a time is within the validity of a certificate, of an agent
// or an authority; both ends are inclusive.
func Current(cert *x509.Certificate, at time.Time) error { return checkTime(cert, at) }

// checkLeaf reports whether an agent may sign with cert, apart from time and issuer.
func checkLeaf(cert *x509.Certificate) error {
	if isProxy(cert) {
		return fmt.Errorf("subject %q: %w", cert.Subject, ErrProxy)
	}
	if cert.IsCA {
		return fmt.Errorf("subject %q is an authority: %w", cert.Subject, ErrUsage)
	}
	const signs = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	if cert.KeyUsage != 0 && cert.KeyUsage&signs == 0 {
		return fmt.Errorf("subject %q: key usage without digital signature: %w", cert.Subject, ErrUsage)
	}
	return checkStrength(cert)
}

// checkStrength reports whether cert's key, and the signature on cert, are strong
// enough. It ignores a root's signature on itself, which proves nothing.
func checkStrength(cert *x509.Certificate) error {
	if err := checkKey(cert.PublicKey); err != nil {
		return fmt.Errorf("subject %q: %w", cert.Subject, err)
	}
	switch cert.SignatureAlgorithm {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
		return nil
	}
	if selfIssued(cert) && cert.IsCA {
		return nil
	}
	return fmt.Errorf("subject %q is signed with %s, want SHA-256 or better with RSA or ECDSA: %w",
		cert.Subject, cert.SignatureAlgorithm, ErrWeak)
}

// checkTime reports whether cert is valid at a time; both ends are inclusive.
func checkTime(cert *x509.Certificate, at time.Time) error {
	if at.Before(cert.NotBefore) {
		return fmt.Errorf("subject %q is valid from %s, not at %s: %w",
			cert.Subject, cert.NotBefore.Format(time.RFC3339), at.Format(time.RFC3339), ErrNotYetValid)
	}
	if at.After(cert.NotAfter) {
		return fmt.Errorf("subject %q was valid until %s, not at %s: %w",
			cert.Subject, cert.NotAfter.Format(time.RFC3339), at.Format(time.RFC3339), ErrExpired)
	}
	return nil
}

// isProxy reports whether cert has the proxyCertInfo extension of RFC 3820.
func isProxy(cert *x509.Certificate) bool {
	proxyCertInfo := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}
	return slices.ContainsFunc(cert.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(proxyCertInfo) })
}
