package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"ramp/protocol/identity"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// random is a source of the same bytes for the same seed.
func random(seed string) *mathrand.ChaCha8 {
	var b [32]byte
	copy(b[:], seed)
	return mathrand.NewChaCha8(b)
}

func newKey(tb testing.TB, seed string) crypto.Signer {
	tb.Helper()
	key, err := identity.NewKey(random(seed))
	must(tb, err)
	return key
}

func newRSA(tb testing.TB, bits int) crypto.Signer {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	must(tb, err)
	return key
}

func newEC(tb testing.TB, c elliptic.Curve) crypto.Signer {
	tb.Helper()
	key, err := ecdsa.GenerateKey(c, rand.Reader)
	must(tb, err)
	return key
}

func newCA(tb testing.TB, name string) *identity.CA {
	tb.Helper()
	ca, err := identity.NewCA(name, now, 10*year, random(name))
	must(tb, err)
	return ca
}

func newTrust(tb testing.TB, anchors, crls []byte) *identity.Trust {
	tb.Helper()
	trust, err := identity.NewTrust(anchors, crls)
	must(tb, err)
	return trust
}

// issue is a PEM chain of the agent called name, good for a year.
func issue(tb testing.TB, ca *identity.CA, name string) []byte {
	tb.Helper()
	chain, err := ca.Issue(name, newKey(tb, name).Public(), now, year)
	must(tb, err)
	return chain
}

func keyPEM(tb testing.TB, key crypto.Signer) []byte {
	tb.Helper()
	b, err := identity.KeyPEM(key)
	must(tb, err)
	return b
}

// ders are the DER bytes of the certificates of a PEM file.
func ders(certs ...[]byte) [][]byte {
	var out [][]byte
	for _, c := range certs {
		for block, rest := pem.Decode(c); block != nil; block, rest = pem.Decode(rest) {
			out = append(out, block.Bytes)
		}
	}
	return out
}

func toPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// authority is one that signs whatever a test wants, unlike identity.CA.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// loose is an authority with ca's certificate and key.
func loose(tb testing.TB, ca *identity.CA) authority {
	tb.Helper()
	cert, err := x509.ParseCertificate(ders(ca.CertPEM())[0])
	must(tb, err)
	b, err := ca.KeyPEM()
	must(tb, err)
	key, err := identity.ParseKey(b)
	must(tb, err)
	return authority{cert, key}
}

// sign makes a certificate of an agent, changed by change.
func (a authority) sign(tb testing.TB, pub crypto.PublicKey, change func(*x509.Certificate)) []byte {
	tb.Helper()
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "ann"}, SerialNumber: big.NewInt(7), BasicConstraintsValid: true,
		NotBefore: now.Add(-day), NotAfter: now.Add(year), KeyUsage: x509.KeyUsageDigitalSignature,
	}
	change(t)
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, pub, a.key)
	must(tb, err)
	return toPEM("CERTIFICATE", der)
}
