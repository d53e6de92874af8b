package markettest

import (
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// Dawn is the time at which every Market begins.
var Dawn = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// The parties of every market; sellers are named by Seller.
const (
	User = "user"
	Bank = "bank"
	// Stranger has a credential but no role: a test speaks in its name.
	Stranger = "stranger"
)

// Seller is the name of seller i, from 1.
func Seller(i int) string { return fmt.Sprintf("s%02d", i) }

// Cast is the credentials of the parties of markets. Keys are slow to make, so many
// markets share one Cast.
type Cast struct {
	CA      *identity.CA
	Trust   *identity.Trust
	Sellers int
	by      map[string]*identity.Credential
}

// NewCast makes the credentials of a market with a number of sellers.
func NewCast(tb testing.TB, sellers int) *Cast {
	tb.Helper()
	begin := Dawn.AddDate(-1, 0, 0)
	ca, err := identity.NewCA("Test CA", begin, 10*365*24*time.Hour, mathrand.NewChaCha8([32]byte{1}))
	must(tb, err)
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	must(tb, err)
	c := &Cast{CA: ca, Trust: trust, Sellers: sellers, by: map[string]*identity.Credential{}}
	for _, name := range append([]string{Stranger}, c.names()...) {
		c.by[name] = c.issue(tb, name)
	}
	return c
}

// names are the parties in a fixed order.
func (c *Cast) names() []string {
	names := []string{User, Bank}
	for i := 1; i <= c.Sellers; i++ {
		names = append(names, Seller(i))
	}
	return names
}

func (c *Cast) issue(tb testing.TB, name string) *identity.Credential {
	seed := [32]byte{2}
	copy(seed[1:], name)
	credential, err := c.CA.Credential(name, Dawn.AddDate(-1, 0, 0), 9*365*24*time.Hour, mathrand.NewChaCha8(seed))
	must(tb, err)
	return credential
}

// Credential is a party's own.
func (c *Cast) Credential(name string) *identity.Credential { return c.by[name] }

// ID is a party's agent ID.
func (c *Cast) ID(name string) protocol.AgentID { return c.by[name].ID }

// Terms are the one bank and currency of the market.
func (c *Cast) Terms() protocol.Terms { return protocol.Terms{Bank: c.ID(Bank), Currency: "CRD"} }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
