package market

import (
	"fmt"
	"math/rand/v2"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// Dawn is the time at which every market begins.
var Dawn = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)

// Currency is used in every market.
const Currency = "CRD"

// The names of the parties.
const BankName = "bank"

// SiteName and UserName are the parties' names, from 1.
func SiteName(i int) string { return fmt.Sprintf("site%d", i) }

// UserName is the name of user i, from 1.
func UserName(i int) string { return fmt.Sprintf("user%d", i) }

// Cast owns the credentials of the parties of markets and the authority that issued them.
// A name always has the same key. Credentials are made on first use.
type Cast struct {
	CA    *identity.CA
	Trust *identity.Trust
	// Adversaries are those that a market's Config may name, by kind.
	Adversaries map[string]Adversary
	by          map[string]*identity.Credential
}

// life is the validity of every certificate: longer than any simulation.
const life = 30 * 365 * 24 * time.Hour

// NewCast creates the authority.
func NewCast() (*Cast, error) {
	ca, err := identity.NewCA("Simulated CA", Dawn.AddDate(-1, 0, 0), life, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		return nil, err
	}
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	if err != nil {
		return nil, err
	}
	return &Cast{CA: ca, Trust: trust, by: map[string]*identity.Credential{}}, nil
}

// Credential is that of a party. It is not safe for concurrent use.
func (c *Cast) Credential(name string) *identity.Credential {
	if c.by[name] == nil {
		cred, err := Issue(c.CA, name)
		if err != nil {
			panic(fmt.Sprintf("market: credential of %s: %v", name, err))
		}
		c.by[name] = cred
	}
	return c.by[name]
}

// Issue makes a credential whose key is derived from its name.
func Issue(ca *identity.CA, name string) (*identity.Credential, error) {
	seed := [32]byte{2}
	copy(seed[1:], name)
	return ca.Credential(name, Dawn.AddDate(0, -1, 0), life/2, rand.NewChaCha8(seed))
}

// ID is a party's agent ID.
func (c *Cast) ID(name string) protocol.AgentID { return c.Credential(name).ID }

// Terms are the one bank and currency of a market.
func (c *Cast) Terms() protocol.Terms {
	return protocol.Terms{Bank: c.ID(BankName), Currency: Currency}
}
