package contract_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

var (
	now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	// start is when certificates of the tests begin; they last so long that a
	// stock openssl, which looks at the clock, accepts them.
	start = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
)

const year = 365 * 24 * time.Hour

// market is an authority and the credentials it issued.
type market struct {
	ca    *identity.CA
	trust *identity.Trust
	agent map[string]*identity.Credential
}

// newMarket makes a market in which every name has a P-256 key, or an RSA key if
// it begins with "rsa".
func newMarket(tb testing.TB, names ...string) *market {
	tb.Helper()
	ca, err := identity.NewCA("Test CA", start, 80*year, mathrand.NewChaCha8([32]byte{1}))
	must(tb, err)
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	must(tb, err)
	m := &market{ca: ca, trust: trust, agent: map[string]*identity.Credential{}}
	for _, name := range names {
		m.agent[name] = m.issue(tb, name, newKey(tb, name))
	}
	return m
}

func newKey(tb testing.TB, name string) crypto.Signer {
	tb.Helper()
	if strings.HasPrefix(name, "rsa") {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		must(tb, err)
		return key
	}
	seed := [32]byte{2}
	copy(seed[1:], name)
	key, err := identity.NewKey(mathrand.NewChaCha8(seed))
	must(tb, err)
	return key
}

func (m *market) issue(tb testing.TB, name string, key crypto.Signer) *identity.Credential {
	tb.Helper()
	cert, err := m.ca.Issue(name, key.Public(), start, 80*year)
	must(tb, err)
	keyPEM, err := identity.KeyPEM(key)
	must(tb, err)
	c, err := identity.Parse(cert, keyPEM)
	must(tb, err)
	return c
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// bundle is what user buys from sellers, one unit each.
func (m *market) bundle(user string, sellers ...string) protocol.Bundle {
	b := protocol.Bundle{
		Version: 1, Conversation: "c-1", User: m.agent[user].ID, Bank: m.agent["bank"].ID,
		Currency: "RMP", Mode: protocol.ModeOnReservation, RFQ: strings.Repeat("ab", 32),
		Nonce: "0123456789abcdef", SettleBy: now.Add(30 * time.Second),
	}
	for i, s := range sellers {
		slot := protocol.Slot{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Cores: 8}
		b.Units = append(b.Units, protocol.BundleUnit{
			Unit: i, Seller: m.agent[s].ID, Reservation: "r" + s, Slot: slot,
			Price: protocol.Credit / 2, Cost: 4 * protocol.Credit,
		})
		b.Total += 4 * protocol.Credit
	}
	return b
}
