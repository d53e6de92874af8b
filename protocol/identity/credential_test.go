package identity_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ramp/protocol/identity"
)

func TestCredentialIsReadFromEveryUsualForm(t *testing.T) {
	ca := newCA(t, "CA")
	ec, rsaKey := newKey(t, "ann"), newRSA(t, 2048)
	sec1, err := x509.MarshalECPrivateKey(ec.(*ecdsa.PrivateKey))
	must(t, err)
	pkcs1 := x509.MarshalPKCS1PrivateKey(rsaKey.(*rsa.PrivateKey))
	p384 := newEC(t, elliptic.P384())
	for _, tc := range []struct {
		name string
		key  crypto.Signer
		pem  []byte
	}{
		{"P-256 as PKCS#8", ec, keyPEM(t, ec)},
		{"P-256 as SEC 1", ec, toPEM("EC PRIVATE KEY", sec1)},
		{"P-256 as SEC 1 after its parameters", ec, append(toPEM("EC PARAMETERS", []byte{6, 0}), toPEM("EC PRIVATE KEY", sec1)...)},
		{"P-384 as PKCS#8", p384, keyPEM(t, p384)},
		{"RSA as PKCS#8", rsaKey, keyPEM(t, rsaKey)},
		{"RSA as PKCS#1", rsaKey, toPEM("RSA PRIVATE KEY", pkcs1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cert, err := ca.Issue("ann", tc.key.Public(), now, year)
			must(t, err)
			both := append(slices.Clone(tc.pem), cert...) // one file with key and certificate will do
			c, err := identity.Parse(both, both)
			must(t, err)
			peer, err := newTrust(t, ca.CertPEM(), nil).Verify(c.ChainDER(), now)
			must(t, err)
			if peer.ID != c.ID || c.ID.Name() != "ann" {
				t.Errorf("credential of %s, verified as %s", c.ID, peer.ID)
			}
		})
	}
}

func TestBadCredentialsAreRefusedWithAClearWord(t *testing.T) {
	ca := newCA(t, "CA")
	a := loose(t, ca)
	ann := newKey(t, "ann")
	cert := issue(t, ca, "ann")
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	same := func(*x509.Certificate) {}
	small, p521 := newRSA(t, 1024), newEC(t, elliptic.P521())
	caKey, err := ca.KeyPEM()
	must(t, err)
	for _, tc := range []struct {
		name      string
		cert, key []byte
		want      error
		word      string
	}{
		{"the key of somebody else", cert, keyPEM(t, newKey(t, "bob")), identity.ErrMismatch, "does not belong"},
		{"an Ed25519 key", a.sign(t, ed.Public(), same), keyPEM(t, ed), identity.ErrWeak, "Ed25519"},
		{"an Ed25519 key beside a good certificate", cert, keyPEM(t, ed), identity.ErrWeak, "Ed25519"},
		{"an RSA key of 1024 bits", a.sign(t, small.Public(), same), keyPEM(t, small), identity.ErrWeak, "1024 bits"},
		{"a P-521 key", a.sign(t, p521.Public(), same), keyPEM(t, p521), identity.ErrWeak, "P-521"},
		{"the certificate of an authority", ca.CertPEM(), caKey, identity.ErrUsage, "authority"},
		{"an encrypted key", cert, toPEM("ENCRYPTED PRIVATE KEY", []byte{1}), identity.ErrMalformed, "encrypted"},
		{"a key encrypted in the old way", cert, []byte(oldEncrypted), identity.ErrMalformed, "encrypted"},
		{"a broken key", cert, toPEM("PRIVATE KEY", []byte{1}), identity.ErrMalformed, "private key"},
		{"no key", cert, cert, identity.ErrMalformed, "no PEM block of a private key"},
		{"no certificate", keyPEM(t, ann), keyPEM(t, ann), identity.ErrMalformed, "no PEM block of a certificate"},
		{"a broken certificate", toPEM("CERTIFICATE", []byte{1}), keyPEM(t, ann), identity.ErrMalformed, "certificate 1"},
		{"a file without end", bytes.Repeat([]byte("x"), 2<<20), keyPEM(t, ann), identity.ErrMalformed, "at most"},
		{"an enormous certificate", toPEM("CERTIFICATE", make([]byte, 17<<10)), keyPEM(t, ann), identity.ErrMalformed, "at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := identity.Parse(tc.cert, tc.key)
			wantError(t, err, tc.want)
			if err != nil && !strings.Contains(err.Error(), tc.word) {
				t.Errorf("error %q does not say %q", err, tc.word)
			}
		})
	}
}

const oldEncrypted = `-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-256-CBC,B1C0DEB1C0DEB1C0DEB1C0DEB1C0DE00

AAAA
-----END EC PRIVATE KEY-----
`

func TestChainIsOrderedAndEndsBelowTheRoot(t *testing.T) {
	root := newCA(t, "Root")
	sub, err := root.Subordinate("Sub", now, 5*year, random("sub"))
	must(t, err)
	chain := ders(issue(t, sub, "ann"))
	if len(chain) != 2 {
		t.Fatalf("issued %d certificates, want 2", len(chain))
	}
	// The root first, a stranger, then the needed ones, as in concatenated files.
	var file []byte
	impostor := ders(subordinate(t, newCA(t, "Other"), "Sub", year).CertPEM())[0]
	for _, der := range [][]byte{chain[0], ders(root.CertPEM())[0], impostor, ders(newCA(t, "Stranger").CertPEM())[0], chain[1]} {
		file = append(file, toPEM("CERTIFICATE", der)...)
	}
	c, err := identity.Parse(file, keyPEM(t, newKey(t, "ann")))
	must(t, err)
	if got := c.ChainDER(); len(got) != 2 || !bytes.Equal(got[0], chain[0]) || !bytes.Equal(got[1], chain[1]) {
		t.Errorf("chain of %d certificates", len(got))
	}
}

func TestSignaturesAreDeterministicAndVerify(t *testing.T) {
	ca := newCA(t, "CA")
	digest := sha256.Sum256([]byte("what is signed"))
	for _, key := range []crypto.Signer{newKey(t, "ann"), newEC(t, elliptic.P384()), newRSA(t, 2048)} {
		cert, err := ca.Issue("ann", key.Public(), now, year)
		must(t, err)
		c, err := identity.Parse(cert, keyPEM(t, key))
		must(t, err)
		first, err := c.Signer().Sign(rand.Reader, digest[:], crypto.SHA256)
		must(t, err)
		second, err := c.Signer().Sign(nil, digest[:], crypto.SHA256)
		must(t, err)
		if !bytes.Equal(first, second) {
			t.Errorf("%T: two signatures differ", key)
		}
		if !verifies(key.Public(), digest[:], first) {
			t.Errorf("%T: signature does not verify", key)
		}
	}
}

func verifies(pub crypto.PublicKey, digest, sig []byte) bool {
	if k, ok := pub.(*ecdsa.PublicKey); ok {
		return ecdsa.VerifyASN1(k, digest, sig)
	}
	return rsa.VerifyPKCS1v15(pub.(*rsa.PublicKey), crypto.SHA256, digest, sig) == nil
}

func TestSaltedSignaturesAreRefused(t *testing.T) {
	ca := newCA(t, "CA")
	key := newRSA(t, 2048)
	cert, err := ca.Issue("ann", key.Public(), now, year)
	must(t, err)
	c, err := identity.Parse(cert, keyPEM(t, key))
	must(t, err)
	digest := sha256.Sum256(nil)
	if _, err := c.Signer().Sign(nil, digest[:], &rsa.PSSOptions{Hash: crypto.SHA256}); err == nil {
		t.Error("RSA-PSS was signed")
	}
}

func TestNewKeyFollowsFromItsRandomBytes(t *testing.T) {
	a, b, c := newKey(t, "same"), newKey(t, "same"), newKey(t, "other")
	if !a.(*ecdsa.PrivateKey).Equal(b) || a.(*ecdsa.PrivateKey).Equal(c) {
		t.Error("key does not follow from the random bytes")
	}
	if _, err := identity.NewKey(bytes.NewReader(make([]byte, 1<<10))); err == nil {
		t.Error("a source of zeros gave a key")
	}
	if _, err := identity.NewKey(bytes.NewReader(make([]byte, 3))); err == nil {
		t.Error("a source that ends gave a key")
	}
	// A draw that is out of range is followed by another.
	high := append(bytes.Repeat([]byte{0xff}, 32), bytes.Repeat([]byte{1}, 32)...)
	if _, err := identity.NewKey(bytes.NewReader(high)); err != nil {
		t.Error(err)
	}
}

// A site brings keys and certificates that openssl made.
func TestCredentialMadeByOpenSSLIsRead(t *testing.T) {
	dir := openssl(t, nil,
		[]string{"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/O=Grid/CN=Grid CA", "-days", "3650"},
		[]string{"ecparam", "-name", "prime256v1", "-genkey", "-out", "ann.key"},
		[]string{"req", "-new", "-key", "ann.key", "-subj", "/O=Grid/CN=Ann Miller 77", "-out", "ann.csr"},
		[]string{"x509", "-req", "-in", "ann.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "3650", "-out", "ann.pem"})
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return b
	}
	c, err := identity.Parse(read("ann.pem"), read("ann.key"))
	must(t, err)
	trust := newTrust(t, read("ca.pem"), nil)
	_, err = trust.Verify(c.ChainDER(), c.Chain[0].NotBefore)
	if c.ID.Name() != "Ann-Miller-77" || err != nil {
		t.Errorf("%s: %v", c.ID, err)
	}
	_, err = trust.Verify(c.ChainDER(), c.Chain[0].NotAfter.Add(1))
	if !errors.Is(err, identity.ErrExpired) {
		t.Errorf("a nanosecond late: %v", err)
	}
}
