package identity

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"ramp/protocol"
)

const (
	// backdate lets a machine whose clock is slow use a certificate at once.
	backdate = 5 * time.Minute
	// listPeriod is the stated validity of a revocation list.
	listPeriod = 30 * 24 * time.Hour
	// maxCommonName is the bound of X.520.
	maxCommonName = 64
)

// CA is a root certificate authority or one below a root.
type CA struct {
	chain []*x509.Certificate // its own certificate first, up to the root
	key   crypto.Signer
}

// NewCA makes a root authority with a new P-256 key.
func NewCA(name string, now time.Time, lifetime time.Duration, random io.Reader) (*CA, error) {
	key, err := NewKey(random)
	if err != nil {
		return nil, err
	}
	return Root(key, name, now, lifetime)
}

// Root makes a root authority from an existing key.
func Root(key crypto.Signer, name string, now time.Time, lifetime time.Duration) (*CA, error) {
	ca := &CA{key: key}
	cert, err := ca.sign(authority(name), key.Public(), now, lifetime)
	if err != nil {
		return nil, fmt.Errorf("new authority %q: %w", name, err)
	}
	ca.chain = []*x509.Certificate{cert}
	return ca, nil
}

// Subordinate makes an authority with a new P-256 key below ca, which can issue
// to agents but not to further authorities.
func (ca *CA) Subordinate(name string, now time.Time, lifetime time.Duration, random io.Reader) (*CA, error) {
	key, err := NewKey(random)
	if err != nil {
		return nil, err
	}
	t := authority(name)
	t.MaxPathLenZero = true
	cert, err := ca.sign(t, key.Public(), now, lifetime)
	if err != nil {
		return nil, fmt.Errorf("new authority %q: %w", name, err)
	}
	return &CA{chain: append([]*x509.Certificate{cert}, ca.chain...), key: key}, nil
}

// ParseCA reads an authority from its key, its certificate and those of the authorities above it.
func ParseCA(certPEM, keyPEM []byte) (*CA, error) {
	certs, err := parseCertificates(certPEM)
	if err != nil {
		return nil, err
	}
	if !certs[0].IsCA {
		return nil, fmt.Errorf("subject %q is not an authority: %w", certs[0].Subject, ErrUsage)
	}
	key, err := ParseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	if !samePublic(key.Public(), certs[0].PublicKey) {
		return nil, fmt.Errorf("authority %q: %w", certs[0].Subject, ErrMismatch)
	}
	return &CA{chain: certs, key: key}, nil
}

// CertPEM is the authority's certificate and those above it, its own first. For a root
// it is the trust anchor.
func (ca *CA) CertPEM() []byte { return certPEM(ca.chain) }

// KeyPEM is the authority's private key as PKCS#8.
func (ca *CA) KeyPEM() ([]byte, error) { return KeyPEM(ca.key) }

// Issue certifies that pub is the key of the agent called name: 1..63 letters, digits, ".", "_" or
// "-", beginning with a letter. The certificate (PEM, with those between it and the root) is valid
// from five minutes before now until lifetime after now, but not longer than the authority. The
// serial number is derived from all this, so the same call gives the same certificate.
func (ca *CA) Issue(name string, pub crypto.PublicKey, now time.Time, lifetime time.Duration) ([]byte, error) {
	spki, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("issue to %q: %w: %w", name, ErrWeak, err)
	}
	if _, err := protocol.NewAgentID(name, Fingerprint(spki)); err != nil {
		return nil, fmt.Errorf("issue: %w", err)
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	cert, err := ca.sign(t, pub, now, lifetime)
	if err != nil {
		return nil, fmt.Errorf("issue to %q: %w", name, err)
	}
	below := slices.DeleteFunc(slices.Clone(ca.chain), selfIssued)
	return certPEM(append([]*x509.Certificate{cert}, below...)), nil
}

// Credential makes a key and issues a certificate for it.
func (ca *CA) Credential(name string, now time.Time, lifetime time.Duration, random io.Reader) (*Credential, error) {
	key, err := NewKey(random)
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue(name, key.Public(), now, lifetime)
	if err != nil {
		return nil, err
	}
	pem, err := KeyPEM(key)
	if err != nil {
		return nil, err
	}
	return Parse(cert, pem)
}

// SignRequest issues to the common name and key of a PKCS#10 request (PEM), which its
// key must have signed. It ignores everything else in the request.
func (ca *CA) SignRequest(csrPEM []byte, now time.Time, lifetime time.Duration) ([]byte, error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("request: no PEM block CERTIFICATE REQUEST: %w", ErrMalformed)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("request: %w: %w", ErrMalformed, err)
	}
	if err := CheckRequest(csr); err != nil {
		return nil, err
	}
	return ca.Issue(csr.Subject.CommonName, csr.PublicKey, now, lifetime)
}

// CheckRequest reports whether a request is for an accepted key, which has signed it. It
// checks the key first, because verifying a signature of a huge key is expensive.
func CheckRequest(csr *x509.CertificateRequest) error {
	if err := checkKey(csr.PublicKey); err != nil {
		return fmt.Errorf("request of %q: %w", csr.Subject, err)
	}
	if err := csr.CheckSignature(); err != nil {
		return fmt.Errorf("request of %q: %w: %w", csr.Subject, ErrMismatch, err)
	}
	return nil
}

// Request writes a PKCS#10 request (PEM) to certify key under name.
func Request(key crypto.Signer, name string) ([]byte, error) {
	t := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificateRequest(nil, t, signer{key})
	if err != nil {
		return nil, fmt.Errorf("request of %q: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Revoke writes a revocation list (PEM): the previous list, which may be nil, plus
// serials revoked at now. Its number is the previous one plus one.
func (ca *CA) Revoke(previous []byte, serials []*big.Int, now time.Time) ([]byte, error) {
	lists, err := parseLists(previous)
	if err != nil {
		return nil, fmt.Errorf("previous list: %w", err)
	}
	t := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now, NextUpdate: now.Add(listPeriod)}
	for _, l := range lists {
		if err := l.CheckSignatureFrom(ca.chain[0]); err != nil {
			return nil, fmt.Errorf("previous list: %w: %w", ErrForeign, err)
		}
		t.Number.Add(l.Number, big.NewInt(1))
		t.RevokedCertificateEntries = append(t.RevokedCertificateEntries, l.RevokedCertificateEntries...)
	}
	for _, serial := range serials {
		t.RevokedCertificateEntries = addRevoked(t.RevokedCertificateEntries, serial, now)
	}
	der, err := x509.CreateRevocationList(nil, t, ca.chain[0], signer{ca.key})
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}), nil
}

// Issued reports whether this authority itself has signed a certificate; its lists can
// revoke no others.
func (ca *CA) Issued(cert *x509.Certificate) bool { return cert.CheckSignatureFrom(ca.chain[0]) == nil }

// addRevoked keeps the first time at which a serial was revoked.
func addRevoked(entries []x509.RevocationListEntry, serial *big.Int, now time.Time) []x509.RevocationListEntry {
	if slices.ContainsFunc(entries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(serial) == 0 }) {
		return entries
	}
	return append(entries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: now})
}

func authority(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

// sign completes and signs a template; an authority without a chain signs itself.
func (ca *CA) sign(t *x509.Certificate, pub crypto.PublicKey, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	if cn := t.Subject.CommonName; cn == "" || len(cn) > maxCommonName {
		return nil, fmt.Errorf("name of %d bytes, want 1..%d: %w", len(cn), maxCommonName, ErrUsage)
	}
	if lifetime <= 0 {
		return nil, fmt.Errorf("lifetime %s, want more than zero: %w", lifetime, ErrUsage)
	}
	if err := checkKey(pub); err != nil {
		return nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, err
	}
	t.NotBefore, t.NotAfter = now.Add(-backdate).UTC(), now.Add(lifetime).UTC()
	parent := t
	if len(ca.chain) > 0 {
		parent = ca.chain[0]
		if parent.NotAfter.Before(t.NotAfter) {
			t.NotAfter = parent.NotAfter
		}
	}
	t.SerialNumber = serial(parent, t, spki)
	id := sha256.Sum256(spki)
	t.SubjectKeyId = id[:20]
	der, err := x509.CreateCertificate(nil, t, parent, pub, signer{ca.key})
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// serial is 127 bits of a hash over everything that distinguishes the certificates of an
// authority, so that the authority needs no counter.
func serial(parent, t *x509.Certificate, spki []byte) *big.Int {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d ", len(t.Subject.CommonName), t.NotBefore.UnixNano(), t.NotAfter.UnixNano())
	h.Write([]byte(t.Subject.CommonName))
	h.Write(parent.RawSubjectPublicKeyInfo)
	h.Write(spki)
	sum := h.Sum(nil)
	sum[0] &= 0x7f
	return new(big.Int).SetBytes(sum[:16])
}

func certPEM(certs []*x509.Certificate) []byte {
	var out []byte
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}
