package identity

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"ramp/protocol"
)

// Bounds of a certificate chain.
const (
	MaxChain       = 8        // certificates, without the trust anchor
	MaxCertificate = 16 << 10 // bytes of one certificate in DER
	maxPEM         = 1 << 20  // bytes of a PEM file of certificates
)

// Credential is the certificate and the private key of an agent.
type Credential struct {
	ID    protocol.AgentID
	Chain []*x509.Certificate // leaf first, without the root; 1..MaxChain
	key   crypto.Signer
}

// Parse reads a credential: certPEM has the agent's certificate first and then those of the
// authorities between it and a trust anchor, in any order; keyPEM has the key. Parse drops a root
// and skips other PEM blocks in certPEM, so the same file may serve as both arguments.
//
// Trust decides whether the certificate is valid and trusted.
func Parse(certPEM, keyPEM []byte) (*Credential, error) {
	certs, err := parseCertificates(certPEM)
	if err != nil {
		return nil, err
	}
	leaf := certs[0]
	if err := checkLeaf(leaf); err != nil {
		return nil, err
	}
	id, err := ID(leaf)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	if !samePublic(key.Public(), leaf.PublicKey) {
		return nil, fmt.Errorf("credential of %s: %w", id, ErrMismatch)
	}
	chain := link(leaf, certs[1:])
	if len(chain) > MaxChain {
		return nil, fmt.Errorf("credential of %s: chain of %d certificates, at most %d: %w", id, len(chain), MaxChain, ErrMalformed)
	}
	return &Credential{ID: id, Chain: chain, key: key}, nil
}

// Signer signs with the credential's key, deterministically: the same digest
// gives the same signature. RSA signs only by PKCS#1 v1.5.
func (c *Credential) Signer() crypto.Signer { return signer{c.key} }

// PrivateKey is the key itself, *ecdsa.PrivateKey or *rsa.PrivateKey, for a host on the mesh.
func (c *Credential) PrivateKey() crypto.Signer { return c.key }

// ChainDER is the chain in DER, leaf first, for Trust.Verify.
func (c *Credential) ChainDER() [][]byte {
	ders := make([][]byte, len(c.Chain))
	for i, cert := range c.Chain {
		ders[i] = cert.Raw
	}
	return ders
}

func samePublic(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// parseCertificates reads all certificates of a PEM file, at least one.
func parseCertificates(certPEM []byte) ([]*x509.Certificate, error) {
	if len(certPEM) > maxPEM {
		return nil, fmt.Errorf("certificates: %d bytes, at most %d: %w", len(certPEM), maxPEM, ErrMalformed)
	}
	var certs []*x509.Certificate
	for block, rest := pem.Decode(certPEM); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := parseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("certificates: no PEM block of a certificate: %w", ErrMalformed)
	}
	return certs, nil
}

func parseCertificate(der []byte) (*x509.Certificate, error) {
	if len(der) > MaxCertificate {
		return nil, fmt.Errorf("%d bytes, at most %d: %w", len(der), MaxCertificate, ErrMalformed)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return cert, nil
}

// link orders the issuers above leaf, as far as certs has them. It stops before a root
// and uses no certificate twice.
func link(leaf *x509.Certificate, certs []*x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{leaf}
	for range certs {
		issuer := issuerOf(chain[len(chain)-1], certs)
		if issuer == nil || selfIssued(issuer) {
			break
		}
		chain = append(chain, issuer)
	}
	return chain
}

func issuerOf(cert *x509.Certificate, among []*x509.Certificate) *x509.Certificate {
	for _, c := range among {
		if bytes.Equal(c.RawSubject, cert.RawIssuer) && cert.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}

func selfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) }
