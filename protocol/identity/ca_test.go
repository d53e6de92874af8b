package identity_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ramp/protocol/identity"
)

func TestStockOpenSSLVerifiesAndRevokes(t *testing.T) {
	long := 80 * year // openssl looks at the clock, and so these are good for long
	start := now.Add(-6 * year)
	root := must2(identity.NewCA("Root", start, long, random("root")))(t)
	sub := must2(root.Subordinate("Sub", start, long, random("sub")))(t)
	leaf := must2(sub.Issue("ann", newKey(t, "ann").Public(), start, long))(t)
	certs := ders(leaf)
	crls := append(must2(root.Revoke(nil, nil, start))(t), must2(sub.Revoke(nil, []*big.Int{serialOf(t, certs)}, start))(t)...)
	files := map[string][]byte{
		"ca.pem": root.CertPEM(), "sub.pem": toPEM("CERTIFICATE", certs[1]), "ann.pem": toPEM("CERTIFICATE", certs[0]), "crl.pem": crls,
	}
	verify := []string{"verify", "-x509_strict", "-purpose", "any", "-CAfile", "ca.pem", "-untrusted", "sub.pem", "ann.pem"}
	openssl(t, files, verify, []string{"crl", "-in", "crl.pem", "-CAfile", "ca.pem", "-noout"})
}

func TestIssuingIsDeterministicAndSerialsDiffer(t *testing.T) {
	ca := newCA(t, "CA")
	again := newCA(t, "CA")
	if !bytes.Equal(issue(t, ca, "ann"), issue(t, again, "ann")) {
		t.Error("the same call gave two certificates")
	}
	serials := map[string]bool{}
	pub := newKey(t, "ann").Public()
	for _, chain := range [][]byte{
		issue(t, ca, "ann"), issue(t, ca, "bob"),
		must2(ca.Issue("ann", pub, now.Add(1e9), year))(t), must2(ca.Issue("ann", pub, now, year+1e9))(t),
		must2(ca.Issue("ann", newKey(t, "other").Public(), now, year))(t),
	} {
		serials[serialOf(t, ders(chain)).String()] = true
	}
	if len(serials) != 5 {
		t.Errorf("%d serial numbers for 5 certificates", len(serials))
	}
}

func TestLeafDoesNotOutliveItsAuthority(t *testing.T) {
	ca := must2(identity.NewCA("CA", now, 10*day, random("ca")))(t)
	leaf := must2(x509.ParseCertificate(ders(issue(t, ca, "ann"))[0]))(t)
	if want := now.Add(10 * day); !leaf.NotAfter.Equal(want) {
		t.Errorf("valid until %s, want %s", leaf.NotAfter, want)
	}
}

func TestAuthorityIsReadBack(t *testing.T) {
	root := newCA(t, "Root")
	for _, ca := range []*identity.CA{root, subordinate(t, root, "Sub", year)} {
		key := must2(ca.KeyPEM())(t)
		again := must2(identity.ParseCA(ca.CertPEM(), key))(t)
		if !bytes.Equal(issue(t, again, "ann"), issue(t, ca, "ann")) {
			t.Error("the authority that was read back issues otherwise")
		}
		_, err := identity.ParseCA(ca.CertPEM(), keyPEM(t, newKey(t, "other")))
		wantError(t, err, identity.ErrMismatch)
		_, err = identity.ParseCA(issue(t, ca, "ann"), keyPEM(t, newKey(t, "ann")))
		wantError(t, err, identity.ErrUsage)
	}
}

func TestAuthorityBelowARootCannotMakeAuthorities(t *testing.T) {
	root := newCA(t, "Root")
	deep := subordinate(t, subordinate(t, root, "Sub", year), "Deep", year)
	_, err := newTrust(t, root.CertPEM(), nil).Verify(ders(issue(t, deep, "ann")), now)
	wantError(t, err, identity.ErrForeign)
}

func TestRequestIsSigned(t *testing.T) {
	ca := newCA(t, "CA")
	key := newKey(t, "ann")
	csr := must2(identity.Request(key, "ann"))(t)
	chain := must2(ca.SignRequest(csr, now, year))(t)
	if !bytes.Equal(chain, issue(t, ca, "ann")) {
		t.Error("a request gives another certificate than Issue")
	}
	forged := bytes.Clone(ders(csr)[0])
	forged[len(forged)-1] ^= 1
	_, err := ca.SignRequest(toPEM("CERTIFICATE REQUEST", forged), now, year)
	wantError(t, err, identity.ErrMismatch)
	_, err = ca.SignRequest(chain, now, year)
	wantError(t, err, identity.ErrMalformed)
	_, err = ca.SignRequest(toPEM("CERTIFICATE REQUEST", []byte{1}), now, year)
	wantError(t, err, identity.ErrMalformed)
}

func TestRequestMadeByOpenSSLIsSignedWithoutWhatElseItAsksFor(t *testing.T) {
	dir := openssl(t, nil, []string{"req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "ann.key", "-out", "ann.csr",
		"-subj", "/CN=ann", "-addext", "basicConstraints=critical,CA:TRUE"})
	csr := must2(os.ReadFile(filepath.Join(dir, "ann.csr")))(t)
	key := must2(os.ReadFile(filepath.Join(dir, "ann.key")))(t)
	ca := newCA(t, "CA")
	c := must2(identity.Parse(must2(ca.SignRequest(csr, now, year))(t), key))(t)
	must2(newTrust(t, ca.CertPEM(), nil).Verify(c.ChainDER(), now))(t)
}

func TestWhatIsNotIssued(t *testing.T) {
	ca := newCA(t, "CA")
	pub := newKey(t, "ann").Public()
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	for _, name := range []string{"", "John Smith", "1ann", ".queue", strings.Repeat("a", 64), "ann@x"} {
		if _, err := ca.Issue(name, pub, now, year); err == nil {
			t.Errorf("issued to %q", name)
		}
	}
	_, err = ca.Issue("ann", ed, now, year)
	wantError(t, err, identity.ErrWeak)
	_, err = ca.Issue("ann", "no key", now, year)
	wantError(t, err, identity.ErrWeak)
	_, err = ca.Issue("ann", pub, now, 0)
	wantError(t, err, identity.ErrUsage)
	_, err = identity.NewCA(strings.Repeat("a", 65), now, year, random("ca"))
	wantError(t, err, identity.ErrUsage)
	_, err = identity.NewCA("", now, year, random("ca"))
	wantError(t, err, identity.ErrUsage)
}
