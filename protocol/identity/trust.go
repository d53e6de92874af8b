package identity

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ramp/protocol"
)

// maxRemembered bounds the chains that a Trust remembers: several per agent of a
// market of thousands, about 10 KB each.
const maxRemembered = 4096

// maxSameSubject bounds the certificates of one subject in a chain, as of an authority that two others
// have certified: crypto/x509 tries each path through them.
const maxSameSubject = 2

// Trust decides which certificates are valid: those that lead to one of its anchors and
// are not on one of its revocation lists. Replace changes all of these at once. It is
// safe for use by several workers.
type Trust struct {
	mu    sync.RWMutex
	rules *rules
}

// rules are the anchors and lists of a Trust, which do not change, and the chains that
// they have verified.
type rules struct {
	roots    *x509.CertPool
	between  []*x509.Certificate // authorities below the anchors, given with them
	anchors  []*x509.Certificate
	lists    []signedList
	revoked  revocations
	verified *Memory[knownChain]
}

// Peer is an agent whose certificate was verified.
type Peer struct {
	ID    protocol.AgentID
	Chain []*x509.Certificate // leaf first, without the anchor
}

// knownChain is a verified chain and the time of its validity.
type knownChain struct {
	given        [][]byte // as received
	peer         Peer
	from, until  time.Time // inclusive, of the chain and its anchor together
	revokedSince time.Time // zero: not revoked
}

func (v knownChain) holds(at time.Time) bool {
	return !at.Before(v.from) && !at.After(v.until) && (v.revokedSince.IsZero() || at.Before(v.revokedSince))
}

// NewTrust reads trust anchors and revocation lists. As with OpenSSL's -CAfile, the
// self-signed certificates in anchors (PEM) are the anchors; the others are authorities
// below them, which chains may then omit. crls (each PEM, or DER one after another; may be
// empty) have full lists, each signed by one of these certificates.
//
// A list past its next update still revokes; see Stale.
func NewTrust(anchors []byte, crls ...[]byte) (*Trust, error) {
	certs, err := parseCertificates(anchors)
	if err != nil {
		return nil, fmt.Errorf("trust anchors: %w", err)
	}
	t := &rules{roots: x509.NewCertPool(), verified: NewMemory[knownChain](maxRemembered)}
	for _, cert := range certs {
		if err := t.admit(cert); err != nil {
			return nil, fmt.Errorf("trust anchors: %w", err)
		}
	}
	if len(t.anchors) == 0 {
		return nil, fmt.Errorf("trust anchors: none of the %d certificates is self-signed: %w", len(certs), ErrForeign)
	}
	var all []*x509.RevocationList
	for _, file := range crls {
		lists, err := parseLists(file)
		if err != nil {
			return nil, fmt.Errorf("revocation lists: %w", err)
		}
		all = append(all, lists...)
	}
	t.lists, t.revoked, err = gather(all, certs)
	if err != nil {
		return nil, fmt.Errorf("revocation lists: %w", err)
	}
	return &Trust{rules: t}, nil
}

// Replace takes over the anchors and lists of another Trust. They apply to every later
// verification, even of chains that were verified before.
func (t *Trust) Replace(by *Trust) {
	r := by.current()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules = r
}

func (t *Trust) current() *rules {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rules
}

// Revoked is the number of certificates on the lists.
func (t *Trust) Revoked() int { return len(t.current().revoked) }

func (t *rules) admit(cert *x509.Certificate) error {
	if !cert.IsCA || !cert.BasicConstraintsValid {
		return fmt.Errorf("subject %q is not an authority: %w", cert.Subject, ErrUsage)
	}
	if err := checkStrength(cert); err != nil {
		return err
	}
	if selfIssued(cert) {
		t.roots.AddCert(cert)
		t.anchors = append(t.anchors, cert)
	} else {
		t.between = append(t.between, cert)
	}
	return nil
}

// Verify checks a chain in DER, leaf first and the others in any order, as of a time:
// 1..MaxChain certificates of at most MaxCertificate bytes. A certificate that was
// revoked after that time is valid.
func (t *Trust) Verify(chain [][]byte, at time.Time) (Peer, error) {
	return t.current().verify(chain, at)
}

func (t *rules) verify(chain [][]byte, at time.Time) (Peer, error) {
	if err := checkSizes(chain); err != nil {
		return Peer{}, err
	}
	key := tail(chain[0])
	if v, ok := t.verified.Recall(key); ok && slices.EqualFunc(v.given, chain, bytes.Equal) && v.holds(at) {
		return v.peer, nil
	}
	certs, err := parseChain(chain)
	if err != nil {
		return Peer{}, err
	}
	v, err := t.verifyChain(certs, at)
	if err != nil {
		return Peer{}, err
	}
	for _, cert := range certs {
		if !slices.ContainsFunc(v.peer.Chain, cert.Equal) {
			return v.peer, nil // anybody may add certificates to a chain, and none is worth remembering
		}
		v.given = append(v.given, cert.Raw)
	}
	t.verified.Remember(key, v)
	return v.peer, nil
}

// VerifyPEM is Verify of a file: the agent's certificate first and then those of
// the authorities between it and an anchor, in any order, as Parse reads them.
func (t *Trust) VerifyPEM(certPEM []byte, at time.Time) (Peer, error) {
	certs, err := parseCertificates(certPEM)
	if err != nil {
		return Peer{}, err
	}
	cred := Credential{Chain: link(certs[0], certs[1:])}
	return t.Verify(cred.ChainDER(), at)
}

// tail is the end of a certificate, where its signature is. It is the key of a chain;
// the caller compares the rest.
func tail(der []byte) (key [32]byte) {
	copy(key[:], der[max(0, len(der)-len(key)):])
	return key
}

func checkSizes(chain [][]byte) error {
	if len(chain) < 1 || len(chain) > MaxChain {
		return fmt.Errorf("chain of %d certificates, want 1..%d: %w", len(chain), MaxChain, ErrMalformed)
	}
	for i, der := range chain {
		if len(der) > MaxCertificate {
			return fmt.Errorf("certificate %d: %d bytes, at most %d: %w", i+1, len(der), MaxCertificate, ErrMalformed)
		}
	}
	return nil
}

func parseChain(chain [][]byte) ([]*x509.Certificate, error) {
	certs, subjects := make([]*x509.Certificate, len(chain)), map[string]int{}
	for i, der := range chain {
		// A parsed certificate shares memory with its bytes, which the caller may change
		// while it is remembered.
		cert, err := parseCertificate(bytes.Clone(der))
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		}
		if subjects[string(cert.RawSubject)]++; subjects[string(cert.RawSubject)] > maxSameSubject {
			return nil, fmt.Errorf("certificate %d: %d others have its subject: %w", i+1, maxSameSubject, ErrMalformed)
		}
		certs[i] = cert
	}
	return certs, nil
}

func (t *rules) verifyChain(certs []*x509.Certificate, at time.Time) (knownChain, error) {
	leaf := certs[0]
	if err := checkLeaf(leaf); err != nil {
		return knownChain{}, err
	}
	for _, cert := range certs[1:] {
		if err := checkStrength(cert); err != nil {
			return knownChain{}, err
		}
	}
	id, err := ID(leaf)
	if err != nil {
		return knownChain{}, err
	}
	if err := checkTime(leaf, at); err != nil {
		return knownChain{}, err
	}
	paths, err := leaf.Verify(t.options(certs[1:], at))
	if err != nil {
		return knownChain{}, t.diagnose(certs, at, err)
	}
	return t.choose(id, paths, at)
}

func (t *rules) options(between []*x509.Certificate, at time.Time) x509.VerifyOptions {
	pool := x509.NewCertPool()
	for _, cert := range slices.Concat(between, t.between) {
		pool.AddCert(cert)
	}
	return x509.VerifyOptions{
		Roots: t.roots, Intermediates: pool, CurrentTime: at,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
}

// choose takes the first path to an anchor without a revoked certificate.
func (t *rules) choose(id protocol.AgentID, paths [][]*x509.Certificate, at time.Time) (knownChain, error) {
	var refused error
	for _, path := range paths {
		v := knownChain{peer: Peer{ID: id, Chain: path[:len(path)-1]}}
		v.from, v.until = validity(path)
		cert, since := t.revoked.earliest(path)
		v.revokedSince = since
		if v.holds(at) {
			return v, nil
		}
		refused = fmt.Errorf("subject %q, serial %x, since %s: %w", cert.Subject, cert.SerialNumber, since.Format(time.RFC3339), ErrRevoked)
	}
	return knownChain{}, refused
}

// validity is the time in which all certificates of a path are valid.
func validity(path []*x509.Certificate) (from, until time.Time) {
	from, until = path[0].NotBefore, path[0].NotAfter
	for _, cert := range path[1:] {
		if cert.NotBefore.After(from) {
			from = cert.NotBefore
		}
		if cert.NotAfter.Before(until) {
			until = cert.NotAfter
		}
	}
	return from, until
}

// diagnose explains why there is no path: crypto/x509 calls an authority unknown even if
// it has only expired.
func (t *rules) diagnose(certs []*x509.Certificate, at time.Time, cause error) error {
	for _, cert := range slices.Concat(certs[1:], t.between, t.anchors) {
		if err := checkTime(cert, at); err != nil && issuedBelow(certs, cert) {
			return err
		}
	}
	var invalid x509.CertificateInvalidError
	if errors.As(cause, &invalid) && invalid.Reason == x509.Expired {
		return checkTime(invalid.Cert, at)
	}
	return fmt.Errorf("subject %q, issuer %q: %w: %w", certs[0].Subject, certs[0].Issuer, ErrForeign, cause)
}

func issuedBelow(certs []*x509.Certificate, authority *x509.Certificate) bool {
	return slices.ContainsFunc(certs, func(c *x509.Certificate) bool {
		return issuerOf(c, []*x509.Certificate{authority}) != nil
	})
}

// Stale returns the issuers whose lists were due for renewal before a time. Such a list
// still revokes, because a market must not stop when an authority is down.
func (t *Trust) Stale(at time.Time) []string {
	var names []string
	for _, l := range t.current().lists {
		if !l.NextUpdate.IsZero() && l.NextUpdate.Before(at) {
			names = append(names, l.Issuer.String())
		}
	}
	return names
}
