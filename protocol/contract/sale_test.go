package contract_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

func (m *market) sign(tb testing.TB, user string, b protocol.Bundle) []byte {
	tb.Helper()
	der, err := contract.Sign(m.agent[user], b, now)
	must(tb, err)
	return der
}

func (m *market) countersign(tb testing.TB, seller string, user []byte) []byte {
	tb.Helper()
	v, err := contract.OpenBundle(user, m.trust, now)
	must(tb, err)
	der, err := contract.Countersign(m.agent[seller], v, now)
	must(tb, err)
	return der
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestSigningIsDeterministic(t *testing.T) {
	m := newMarket(t, "ann", "rsa-ann", "bob", "bank")
	for _, user := range []string{"ann", "rsa-ann"} {
		b := m.bundle(user, "bob")
		inner := m.sign(t, user, b)
		if !bytes.Equal(inner, m.sign(t, user, b)) {
			t.Errorf("%s: two signatures of one bundle differ", user)
		}
		if !bytes.Equal(m.countersign(t, "bob", inner), m.countersign(t, "bob", inner)) {
			t.Errorf("%s: two countersignatures differ", user)
		}
		later, err := contract.Sign(m.agent[user], b, now.Add(time.Second))
		must(t, err)
		if bytes.Equal(inner, later) {
			t.Errorf("%s: the signing time is not signed", user)
		}
	}
}

func TestOnlyThePartiesMaySign(t *testing.T) {
	m := newMarket(t, "ann", "bob", "eve", "bank")
	b := m.bundle("ann", "bob")
	_, err := contract.Sign(m.agent["eve"], b, now)
	wantError(t, err, contract.ErrSigner)
	v, err := contract.OpenBundle(m.sign(t, "ann", b), m.trust, now)
	must(t, err)
	_, err = contract.Countersign(m.agent["eve"], v, now)
	wantError(t, err, contract.ErrSigner)
	_, err = contract.Countersign(m.agent["bob"], contract.Verified{ID: v.ID, Bundle: v.Bundle, User: v.User, DER: v.DER}, now)
	wantError(t, err, contract.ErrSignature)
	b.Total++
	_, err = contract.Sign(m.agent["ann"], b, now)
	wantError(t, err, contract.ErrTerms)
}

// An attacker is not held by Sign and Countersign: the tests below sign with
// another program.
func TestSalesThatAreNot(t *testing.T) {
	m := newMarket(t, "ann", "bob", "eve", "bank")
	b := m.bundle("ann", "bob")
	inner := m.sign(t, "ann", b)
	octets, err := contract.Encode(b)
	must(t, err)
	cheap := b
	cheap.Units = slices.Clone(b.Units)
	cheap.Units[0].Cost, cheap.Total = 3*protocol.Credit, 3*protocol.Credit
	cheapOctets, err := contract.Encode(cheap)
	must(t, err)
	other := newMarket(t, "ann", "bob", "bank") // same keys, but the authority has another
	receipt := signed(t, m.agent["bob"], []byte(`{"version":1}`))
	for _, tc := range []struct {
		name string
		der  []byte
		want error
	}{
		{"countersigned by a seller that is not named", signed(t, m.agent["eve"], inner), contract.ErrSigner},
		{"countersigned by the user", signed(t, m.agent["ann"], inner), contract.ErrSigner},
		{"signed by somebody else for the user", signed(t, m.agent["bob"], signed(t, m.agent["eve"], octets)), contract.ErrSigner},
		{"signed by the seller for the user", signed(t, m.agent["bob"], signed(t, m.agent["bob"], octets)), contract.ErrSigner},
		{"other terms under the user's signature", signed(t, m.agent["bob"], swapContent(t, inner, octets, cheapOctets)), contract.ErrSignature},
		{"another inner layer under the seller's signature", swapContent(t, m.countersign(t, "bob", inner), inner, m.sign(t, "ann", cheap)), contract.ErrSignature},
		{"only the user's layer", inner, contract.ErrMalformed},
		{"three layers", signed(t, m.agent["bob"], m.countersign(t, "bob", inner)), contract.ErrMalformed},
		{"another document inside", signed(t, m.agent["bob"], receipt), contract.ErrMalformed},
		{"not the canonical form", signed(t, m.agent["bob"], signed(t, m.agent["ann"], append(octets, '\n'))), contract.ErrMalformed},
		{"of another market", func() []byte {
			c := other.reissue(t, "bob")
			return signed(t, c, signed(t, other.reissue(t, "ann"), octets))
		}(), identity.ErrForeign},
		{"seller of another market", signed(t, other.reissue(t, "bob"), inner), identity.ErrForeign},
		{"nothing", nil, contract.ErrMalformed},
		{"too much", make([]byte, protocol.MaxSignature+1), contract.ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := contract.OpenSale(tc.der, m.trust, now)
			wantError(t, err, tc.want)
			if s.Checked() || s.ID != "" {
				t.Error("a refused sale is marked as checked")
			}
		})
	}
}

// reissue certifies the key of name by an authority that m does not trust.
func (m *market) reissue(t *testing.T, name string) *identity.Credential {
	t.Helper()
	ca, err := identity.NewCA("Test CA", start, 80*year, bytes.NewReader(bytes.Repeat([]byte{9}, 64)))
	must(t, err)
	return (&market{ca: ca}).issue(t, name, m.agent[name].PrivateKey())
}

// swapContent puts other content of the same length into a SignedData.
func swapContent(t *testing.T, der, content, other []byte) []byte {
	t.Helper()
	if len(content) != len(other) || bytes.Count(der, content) != 1 {
		t.Fatalf("%d bytes cannot take the place of %d", len(other), len(content))
	}
	return bytes.Replace(der, content, other, 1)
}

func TestCertificatesCountAtTheTimeOfReceipt(t *testing.T) {
	m := newMarket(t, "bob", "bank")
	cert, err := m.ca.Issue("ann", newKey(t, "ann").Public(), now, time.Hour)
	must(t, err)
	keyPEM, err := identity.KeyPEM(newKey(t, "ann"))
	must(t, err)
	m.agent["ann"], err = identity.Parse(cert, keyPEM)
	must(t, err)
	inner := m.sign(t, "ann", m.bundle("ann", "bob"))
	sale := m.countersign(t, "bob", inner)

	serials := func(name string) []*big.Int { return []*big.Int{m.agent[name].Chain[0].SerialNumber} }
	list := func(name string) *identity.Trust {
		crl, err := m.ca.Revoke(nil, serials(name), now.Add(time.Minute))
		must(t, err)
		trust, err := identity.NewTrust(m.ca.CertPEM(), crl)
		must(t, err)
		return trust
	}
	for _, tc := range []struct {
		name  string
		trust *identity.Trust
		at    time.Time
		want  error
	}{
		{"valid", m.trust, now, nil},
		{"the user's has expired", m.trust, now.Add(2 * time.Hour), identity.ErrExpired},
		{"the user's is not yet valid", m.trust, now.Add(-time.Hour), identity.ErrNotYetValid},
		{"the user's is revoked", list("ann"), now.Add(time.Minute), identity.ErrRevoked},
		{"the user's is revoked later", list("ann"), now.Add(time.Minute - 1), nil},
		{"the seller's is revoked", list("bob"), now.Add(time.Minute), identity.ErrRevoked},
		{"the seller's is revoked later", list("bob"), now, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// First at a good time, so that a memory could mislead.
			o := contract.NewOpener(tc.trust, 16)
			_, err := o.Sale(sale, now)
			must(t, err)
			for _, open := range []func() error{
				func() error { _, err := o.Sale(sale, tc.at); return err },
				func() error { _, err := contract.OpenSale(sale, tc.trust, tc.at); return err },
			} {
				if err := open(); !errors.Is(err, tc.want) {
					t.Errorf("error %v, want %v", err, tc.want)
				}
			}
		})
	}
}

func TestSizesAreRefusedBeforeAnythingIsRead(t *testing.T) {
	m := newMarket(t, "ann", "bank")
	_, opened := contract.OpenSale(make([]byte, protocol.MaxSignature+1), m.trust, now)
	_, decoded := contract.Decode(make([]byte, contract.MaxOctets+1))
	for _, err := range []error{opened, decoded} {
		if err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("error %v", err)
		}
	}
}

func TestManyWorkersMayOpen(t *testing.T) {
	m := newMarket(t, "ann", "bob", "caro", "bank")
	inner := m.sign(t, "ann", m.bundle("ann", "bob", "caro"))
	sales := [][]byte{m.countersign(t, "bob", inner), m.countersign(t, "caro", inner)}
	o := contract.NewOpener(m.trust, 2)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range 20 {
				if _, err := o.Sale(sales[i%2], now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

func TestOwnRecordsAreReadWithoutTrust(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	b := m.bundle("ann", "bob")
	inner := m.sign(t, "ann", b)
	sale := m.countersign(t, "bob", inner)
	got, err := contract.Content(sale)
	must(t, err)
	octets, err := contract.Content(got)
	must(t, err)
	want, err := contract.Encode(b)
	must(t, err)
	if !bytes.Equal(got, inner) || !bytes.Equal(octets, want) {
		t.Errorf("the sale holds %s", octets)
	}
	_, err = contract.Content(octets)
	wantError(t, err, contract.ErrMalformed)
}

func TestChainsWithAuthoritiesBetweenAreCarried(t *testing.T) {
	m := newMarket(t, "bob", "bank")
	sub, err := m.ca.Subordinate("Sub", start, 80*year, bytes.NewReader(bytes.Repeat([]byte{7}, 64)))
	must(t, err)
	m.agent["ann"] = (&market{ca: sub}).issue(t, "ann", newKey(t, "ann"))
	sale := m.countersign(t, "bob", m.sign(t, "ann", m.bundle("ann", "bob")))
	s, err := contract.OpenSale(sale, m.trust, now)
	must(t, err)
	if len(s.User.Chain) != 2 {
		t.Errorf("chain of %d certificates, want 2", len(s.User.Chain))
	}
	openssl(t, map[string][]byte{"sale.p7m": sale, "ca.pem": m.ca.CertPEM()},
		verifyCommand("sale.p7m", "inner.p7"), verifyCommand("inner.p7", "bundle"))
}

func BenchmarkSign(b *testing.B) {
	for _, user := range []string{"ann", "rsa-ann"} {
		m := newMarket(b, user, "bob", "bank")
		bundle := m.bundle(user, "bob", "bob", "bob")
		for i := range bundle.Units {
			bundle.Units[i].Reservation = fmt.Sprint("r", i)
		}
		b.Run(user, func(b *testing.B) {
			for b.Loop() {
				m.sign(b, user, bundle)
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	m := newMarket(b, "ann", "bob", "bank")
	inner := m.sign(b, "ann", m.bundle("ann", "bob"))
	sale := m.countersign(b, "bob", inner)
	for _, bc := range []struct {
		name string
		open func() error
	}{
		{"bundle, chain cold", func() error {
			trust, err := identity.NewTrust(m.ca.CertPEM(), nil)
			must(b, err)
			_, err = contract.OpenBundle(inner, trust, now)
			return err
		}},
		{"bundle, chain remembered", func() error { _, err := contract.OpenBundle(inner, m.trust, now); return err }},
		{"sale, chains remembered", func() error { _, err := contract.OpenSale(sale, m.trust, now); return err }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			for b.Loop() {
				must(b, bc.open())
			}
		})
	}
	digest := sha256.Sum256(inner)
	pub := m.agent["bob"].PrivateKey().Public().(*ecdsa.PublicKey)
	signature, err := m.agent["bob"].Signer().Sign(nil, digest[:], crypto.SHA256)
	must(b, err)
	b.Run("one signature alone", func(b *testing.B) {
		for b.Loop() {
			ecdsa.VerifyASN1(pub, digest[:], signature)
		}
	})
	o := contract.NewOpener(m.trust, 16)
	b.Run("sale remembered", func(b *testing.B) {
		for b.Loop() {
			_, err := o.Sale(sale, now)
			must(b, err)
		}
	})
	b.Run("bundle remembered", func(b *testing.B) {
		for b.Loop() {
			_, err := o.Bundle(inner, now)
			must(b, err)
		}
	})
}

// SignVerified returns the same as signing and opening. It fails for a signer without a
// valid certificate.
func TestSignVerifiedIsWhatOthersOpen(t *testing.T) {
	m := newMarket(t, "ann", "rsa-ann", "bob", "bank")
	for _, user := range []string{"ann", "rsa-ann"} {
		b := m.bundle(user, "bob")
		ticking := time.Now() // has a reading of this process's clock in it, and a zone
		b.SettleBy = ticking.Add(b.SettleBy.Sub(ticking)).In(time.FixedZone("east", 3600))
		got, err := contract.SignVerified(m.agent[user], b, m.trust, now)
		must(t, err)
		want, err := contract.OpenBundle(m.sign(t, user, b), m.trust, now)
		must(t, err)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(contract.Verified{})); diff != "" || !reflect.DeepEqual(want.Bundle, got.Bundle) {
			t.Errorf("%s: %s, got %#v, want %#v", user, diff, got.Bundle, want.Bundle)
		}
		if _, err = contract.SignVerified(m.agent[user], b, m.trust, now.AddDate(200, 0, 0)); err == nil {
			t.Errorf("%s: an expired certificate counts", user)
		}
	}
	_, err := contract.SignVerified(m.agent["bob"], m.bundle("ann", "bob"), m.trust, now)
	wantError(t, err, contract.ErrSigner)
}
