package identity_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol/identity"
)

func subordinate(tb testing.TB, ca *identity.CA, name string, lifetime time.Duration) *identity.CA {
	tb.Helper()
	sub, err := ca.Subordinate(name, now, lifetime, random(name))
	must(tb, err)
	return sub
}

func extension(critical bool, oid ...int) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier(oid), Critical: critical, Value: []byte{0x30, 0}}}
	}
}

// withSHA1 turns the signature algorithm of a certificate into SHA-1 with RSA.
func withSHA1(t *testing.T, certPEM []byte) []byte {
	t.Helper()
	sha256, sha1 := []byte{42, 134, 72, 134, 247, 13, 1, 1, 11}, []byte{42, 134, 72, 134, 247, 13, 1, 1, 5}
	der := ders(certPEM)[0]
	if bytes.Count(der, sha256) != 2 {
		t.Fatal("the certificate is not signed with SHA-256 and RSA")
	}
	return toPEM("CERTIFICATE", bytes.ReplaceAll(der, sha256, sha1))
}

func TestAFileOfCertificatesIsVerifiedAsItsChain(t *testing.T) {
	root, other := newCA(t, "Root"), newCA(t, "Other")
	sub := subordinate(t, root, "Sub", 5*year)
	file := slices.Concat(issue(t, sub, "ann"), root.CertPEM(), other.CertPEM()) // other certificates in the file do not matter
	peer, err := newTrust(t, root.CertPEM(), nil).VerifyPEM(file, now)
	must(t, err)
	if peer.ID.Name() != "ann" || len(peer.Chain) != 2 {
		t.Errorf("%s with a chain of %d, want ann with 2", peer.ID, len(peer.Chain))
	}
	_, err = newTrust(t, other.CertPEM(), nil).VerifyPEM(file, now)
	wantError(t, err, identity.ErrForeign)
	_, err = newTrust(t, root.CertPEM(), nil).VerifyPEM(file, now.Add(20*year))
	wantError(t, err, identity.ErrExpired)
	_, err = newTrust(t, root.CertPEM(), nil).VerifyPEM([]byte("no certificate"), now)
	wantError(t, err, identity.ErrMalformed)
}

func TestUsableIsWithoutRegardToWhoIssuedIt(t *testing.T) {
	root := newCA(t, "Root")
	leaf, err := x509.ParseCertificate(ders(issue(t, root, "ann"))[0])
	must(t, err)
	must(t, identity.Usable(leaf, now))
	wantError(t, identity.Usable(leaf, now.Add(20*year)), identity.ErrExpired)
	anchor, err := x509.ParseCertificate(ders(root.CertPEM())[0])
	must(t, err)
	wantError(t, identity.Usable(anchor, now), identity.ErrUsage)
	must(t, identity.Current(anchor, now))
	wantError(t, identity.Current(anchor, now.Add(200*year)), identity.ErrExpired)
}

func TestChainsThatCount(t *testing.T) {
	root := newCA(t, "Root")
	sub := subordinate(t, root, "Sub", 5*year)
	a := loose(t, root)
	pub := newKey(t, "ann").Public()
	whole := ders(issue(t, sub, "ann"))
	for _, tc := range []struct {
		name    string
		anchors []byte
		chain   [][]byte
	}{
		{"the anchor issued it", root.CertPEM(), ders(issue(t, root, "ann"))},
		{"an authority below the anchor issued it", root.CertPEM(), whole},
		{"the anchor comes with it", root.CertPEM(), append(slices.Clone(whole), ders(root.CertPEM())...)},
		{"a stranger's certificate comes with it", root.CertPEM(), append(slices.Clone(whole), ders(newCA(t, "Other").CertPEM())...)},
		{"the authority between was given with the anchor", sub.CertPEM(), whole[:1]},
		{"one of two anchors issued it", append(newCA(t, "Other").CertPEM(), root.CertPEM()...), whole},
		{"extended key usage is ignored", root.CertPEM(), ders(a.sign(t, pub, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageOCSPSigning}
		}))},
		{"no key usage at all", root.CertPEM(), ders(a.sign(t, pub, func(c *x509.Certificate) { c.KeyUsage = 0 }))},
		{"key usage of content commitment", root.CertPEM(), ders(a.sign(t, pub, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageContentCommitment }))},
		{"an unknown extension that is not critical", root.CertPEM(), ders(a.sign(t, pub, extension(false, 1, 2, 3)))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			peer, err := newTrust(t, tc.anchors, nil).Verify(tc.chain, now)
			must(t, err)
			if peer.ID.Name() != "ann" || !bytes.Equal(peer.Chain[0].Raw, tc.chain[0]) {
				t.Errorf("verified %s", peer.ID)
			}
		})
	}
}

func TestChainsThatDoNotCount(t *testing.T) {
	root := newCA(t, "Root")
	sub := subordinate(t, root, "Sub", 30*day)
	a, pub := loose(t, root), newKey(t, "ann").Public()
	chain := ders(issue(t, root, "ann"))
	below := ders(issue(t, sub, "ann"))
	impostor, err := identity.NewCA("Root", now, year, random("impostor"))
	must(t, err)
	long := slices.Repeat(chain, identity.MaxChain+1)
	// The last octet belongs to the signature, and any value of it is still DER.
	forged := slices.Clone(chain[0])
	forged[len(forged)-1] ^= 1
	sign := func(change func(*x509.Certificate)) [][]byte { return ders(a.sign(t, pub, change)) }
	agent := authority{must2(x509.ParseCertificate(chain[0]))(t), newKey(t, "ann")}
	rsaAuthority := authority{a.cert, newRSA(t, 2048)}
	rsaAuthority.cert = must2(x509.ParseCertificate(ders(selfSigned(t, rsaAuthority))[0]))(t)
	weak := authority{key: newRSA(t, 1024)}
	weak.cert = must2(x509.ParseCertificate(ders(a.sign(t, weak.key.Public(), func(c *x509.Certificate) {
		c.Subject.CommonName, c.IsCA, c.KeyUsage = "Weak", true, x509.KeyUsageCertSign
	}))[0]))(t)
	for _, tc := range []struct {
		name  string
		chain [][]byte
		at    time.Time
		want  error
		word  string
	}{
		{"expired", chain, now.Add(year + time.Second), identity.ErrExpired, "ann"},
		{"not yet valid", chain, now.Add(-time.Hour), identity.ErrNotYetValid, "ann"},
		{"the authority between has expired", sign2(t, sub, 20*day, 60*day), now.Add(40 * day), identity.ErrExpired, "Sub"},
		{"no authority between", below[:1], now, identity.ErrForeign, "Sub"},
		{"of another market", ders(issue(t, newCA(t, "Other"), "ann")), now, identity.ErrForeign, "Other"},
		{"of an authority that bears the anchor's name", ders(issue(t, impostor, "ann")), now, identity.ErrForeign, "Root"},
		{"signed by nobody", [][]byte{forged}, now, identity.ErrForeign, "ann"},
		{"signed by itself", ders(selfSignedAgent(t)), now, identity.ErrForeign, "ann"},
		{"signed by an agent", append(ders(agent.sign(t, pub, func(*x509.Certificate) {})), chain...), now, identity.ErrForeign, "ann"},
		{"an RFC 3820 proxy", append(ders(agent.sign(t, pub, extension(true, 1, 3, 6, 1, 5, 5, 7, 1, 14))), chain...), now, identity.ErrProxy, "proxy"},
		{"a proxy that an authority signed", sign(extension(false, 1, 3, 6, 1, 5, 5, 7, 1, 14)), now, identity.ErrProxy, "proxy"},
		{"three authorities of one subject", slices.Concat(chain, slices.Repeat(ders(impostor.CertPEM()), 3)), now, identity.ErrMalformed, "have its subject"},
		{"an authority", ders(root.CertPEM()), now, identity.ErrUsage, "authority"},
		{"key usage without digital signature", sign(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }), now, identity.ErrUsage, "key usage"},
		{"no common name", sign(func(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"Grid"}} }), now, identity.ErrUsage, "common name"},
		{"a critical extension that nobody knows", sign(extension(true, 1, 2, 3)), now, identity.ErrForeign, "critical"},
		{"an RSA key of 1024 bits", ders(a.sign(t, newRSA(t, 1024).Public(), func(*x509.Certificate) {})), now, identity.ErrWeak, "1024"},
		{"a P-224 key", ders(a.sign(t, newEC(t, elliptic.P224()).Public(), func(*x509.Certificate) {})), now, identity.ErrWeak, "P-224"},
		{"signed with SHA-1", ders(withSHA1(t, rsaAuthority.sign(t, pub, func(*x509.Certificate) {}))), now, identity.ErrWeak, "SHA1"},
		{"the authority between has a weak key", [][]byte{ders(weak.sign(t, pub, func(*x509.Certificate) {}))[0], weak.cert.Raw}, now, identity.ErrWeak, "Weak"},
		{"empty", nil, now, identity.ErrMalformed, "want 1..8"},
		{"too long", long, now, identity.ErrMalformed, "want 1..8"},
		{"of an enormous certificate", [][]byte{make([]byte, identity.MaxCertificate+1)}, now, identity.ErrMalformed, "at most"},
		{"of no certificate", [][]byte{[]byte("hello")}, now, identity.ErrMalformed, "certificate 1"},
		{"with bytes after the certificate", [][]byte{append(slices.Clone(chain[0]), 0)}, now, identity.ErrMalformed, "certificate 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			peer, err := newTrust(t, root.CertPEM(), nil).Verify(tc.chain, tc.at)
			wantError(t, err, tc.want)
			if err != nil && !strings.Contains(err.Error(), tc.word) {
				t.Errorf("error %q does not say %q", err, tc.word)
			}
			if peer.ID != "" || peer.Chain != nil {
				t.Errorf("a refused chain gave %s", peer.ID)
			}
		})
	}
}

// must2 unpacks a value and an error inside an expression.
func must2[V any](v V, err error) func(testing.TB) V {
	return func(tb testing.TB) V {
		tb.Helper()
		must(tb, err)
		return v
	}
}

// sign2 is a chain whose leaf outlives the authority sub above it.
func sign2(t *testing.T, sub *identity.CA, from, until time.Duration) [][]byte {
	t.Helper()
	leaf := loose(t, sub).sign(t, newKey(t, "ann").Public(), func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = now.Add(from), now.Add(until)
	})
	return append(ders(leaf), ders(sub.CertPEM())[0])
}

func selfSigned(t *testing.T, a authority) []byte {
	t.Helper()
	template := *a.cert
	template.PublicKey, template.SignatureAlgorithm, template.RawSubjectPublicKeyInfo = nil, 0, nil
	template.SubjectKeyId, template.AuthorityKeyId = nil, nil
	der := must2(x509.CreateCertificate(random("self"), &template, &template, a.key.Public(), a.key))(t)
	return toPEM("CERTIFICATE", der)
}

func selfSignedAgent(t *testing.T) []byte {
	t.Helper()
	key := newKey(t, "ann")
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "ann"}, SerialNumber: big.NewInt(1), NotBefore: now.Add(-day), NotAfter: now.Add(year),
	}
	return toPEM("CERTIFICATE", must2(x509.CreateCertificate(random("self"), template, template, key.Public(), key))(t))
}

func TestBadAnchorsAreRefused(t *testing.T) {
	root := newCA(t, "Root")
	sub := subordinate(t, root, "Sub", year)
	for _, tc := range []struct {
		name    string
		anchors []byte
		want    error
	}{
		{"nothing", nil, identity.ErrMalformed},
		{"no PEM", []byte("hello"), identity.ErrMalformed},
		{"a certificate that cannot be read", toPEM("CERTIFICATE", []byte{1}), identity.ErrMalformed},
		{"an agent's certificate", issue(t, root, "ann"), identity.ErrUsage},
		{"an agent's certificate that signs itself", selfSignedAgent(t), identity.ErrUsage},
		{"only an authority below a root", toPEM("CERTIFICATE", ders(sub.CertPEM())[0]), identity.ErrForeign},
		{"a root with a weak key", selfSigned(t, authority{loose(t, root).cert, newRSA(t, 1024)}), identity.ErrWeak},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := identity.NewTrust(tc.anchors, nil)
			wantError(t, err, tc.want)
		})
	}
}

func TestWhatIsRememberedDoesNotChangeWithTheCallersBuffer(t *testing.T) {
	ca := newCA(t, "CA")
	trust := newTrust(t, ca.CertPEM(), nil)
	chain := ders(issue(t, ca, "ann"))
	want := bytes.Clone(chain[0])
	peer, err := trust.Verify(chain, now)
	must(t, err)
	clear(chain[0])
	if !bytes.Equal(peer.Chain[0].Raw, want) {
		t.Error("the verified certificate changed")
	}
	if _, err := trust.Verify(chain, now); err == nil {
		t.Error("a chain of zeros is verified")
	}
}

// A Trust that remembers must answer as one that does not, whatever was asked
// before and in which order of times.
func TestRememberedChainsAnswerAsFreshOnes(t *testing.T) {
	root := newCA(t, "Root")
	sub := subordinate(t, root, "Sub", 100*day)
	late := must2(root.Subordinate("Late", now.Add(60*day), 100*day, random("late")))(t)
	chains := [][][]byte{
		sign2(t, late, -day, 300*day),
		ders(issue(t, root, "ann")), ders(issue(t, sub, "bob")), ders(issue(t, root, "revoked")),
		sign2(t, sub, 20*day, 300*day), ders(issue(t, newCA(t, "Other"), "eve")),
	}
	revoked := must2(x509.ParseCertificate(chains[3][0]))(t)
	crl := must2(root.Revoke(nil, []*big.Int{revoked.SerialNumber}, now.Add(50*day)))(t)
	warm := newTrust(t, root.CertPEM(), crl)
	kinds := []error{identity.ErrExpired, identity.ErrNotYetValid, identity.ErrRevoked, identity.ErrForeign}
	rapid.Check(t, func(rt *rapid.T) {
		chain := rapid.SampledFrom(chains).Draw(rt, "chain")
		at := now.Add(time.Duration(rapid.IntRange(-2, 400).Draw(rt, "day")) * day)
		got, gotErr := warm.Verify(chain, at)
		want, wantErr := must2(identity.NewTrust(root.CertPEM(), crl))(t).Verify(chain, at)
		if got.ID != want.ID || (gotErr == nil) != (wantErr == nil) {
			rt.Fatalf("remembering: %s, %v; fresh: %s, %v", got.ID, gotErr, want.ID, wantErr)
		}
		for _, kind := range kinds {
			if errors.Is(gotErr, kind) != errors.Is(wantErr, kind) {
				rt.Fatalf("remembering: %v; fresh: %v", gotErr, wantErr)
			}
		}
	})
}

func TestRememberedChainIsNotUsedForAnotherTimeOrForm(t *testing.T) {
	root := newCA(t, "Root")
	late := must2(root.Subordinate("Late", now.Add(60*day), 100*day, random("late")))(t)
	chain := sign2(t, late, -day, 300*day)
	trust := newTrust(t, root.CertPEM(), nil)
	must2(trust.Verify(chain, now.Add(70*day)))(t)
	_, err := trust.Verify(chain, now.Add(10*day))
	wantError(t, err, identity.ErrNotYetValid)
	_, err = trust.Verify(chain, now.Add(200*day))
	wantError(t, err, identity.ErrExpired)
	_, err = trust.Verify([][]byte{slices.Concat(chain...)}, now.Add(70*day))
	wantError(t, err, identity.ErrMalformed)
}

func TestManyWorkersMayVerify(t *testing.T) {
	ca := newCA(t, "CA")
	trust := newTrust(t, ca.CertPEM(), nil)
	chains := make([][][]byte, 8)
	for i := range chains {
		chains[i] = ders(issue(t, ca, fmt.Sprintf("a%d", i)))
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range 40 {
				peer, err := trust.Verify(chains[i%8], now)
				if err != nil || peer.ID.Name() != fmt.Sprintf("a%d", i%8) {
					t.Errorf("%s, %v", peer.ID, err)
				}
			}
		})
	}
	workers.Wait()
}

func BenchmarkVerifyChain(b *testing.B) {
	root := newCA(b, "Root")
	sub := subordinate(b, root, "Sub", year)
	chain := ders(issue(b, sub, "ann"))
	trust := newTrust(b, root.CertPEM(), nil)
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			must2(trust.Verify(chain, now))(b)
		}
	})
	b.Run("cold, one authority between", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			fresh := must2(identity.NewTrust(root.CertPEM(), nil))(b)
			b.StartTimer()
			must2(fresh.Verify(chain, now))(b)
		}
	})
}

func FuzzVerify(f *testing.F) {
	root := newCA(f, "Root")
	sub := subordinate(f, root, "Sub", year)
	trust := newTrust(f, root.CertPEM(), nil)
	chain := ders(issue(f, sub, "ann"))
	f.Add(chain[0], chain[1])
	f.Add(ders(issue(f, root, "bob"))[0], []byte{})
	f.Fuzz(func(t *testing.T, leaf, between []byte) {
		peer, err := trust.Verify([][]byte{leaf, between}, now)
		if err == nil && peer.ID.Validate() != nil {
			t.Errorf("verified %q", peer.ID)
		}
	})
}

// Replaced rules count at once, also for chains that were verified before, while
// others verify; and the old ones count again when they are put back.
func TestReplacedRulesCountAtOnce(t *testing.T) {
	root := newCA(t, "Root")
	ann := ders(issue(t, root, "ann"))
	before := must2(identity.NewTrust(root.CertPEM(), nil))(t)
	revoking := must2(identity.NewTrust(root.CertPEM(), must2(root.Revoke(nil, []*big.Int{serialOf(t, ann)}, now))(t)))(t)
	foreign := must2(identity.NewTrust(newCA(t, "Other").CertPEM(), nil))(t)
	trust := must2(identity.NewTrust(root.CertPEM(), nil))(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 200 {
			_, _ = trust.Verify(ann, now.Add(day)) // either way, whichever rules it meets
		}
	})
	for _, step := range []struct {
		by   *identity.Trust
		want error
	}{{before, nil}, {revoking, identity.ErrRevoked}, {before, nil}, {foreign, identity.ErrForeign}, {before, nil}} {
		trust.Replace(step.by)
		if _, err := trust.Verify(ann, now.Add(day)); !errors.Is(err, step.want) {
			t.Errorf("error %v, want %v", err, step.want)
		}
		if trust.Revoked() != step.by.Revoked() {
			t.Errorf("%d revoked, want %d", trust.Revoked(), step.by.Revoked())
		}
	}
	wg.Wait()
}
