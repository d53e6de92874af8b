package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol/identity"
)

// founding is what init makes a bank of.
type founding struct {
	dir, ca, name, policy, decay string
	currencies, listen           []string
}

func newBankInit() *cobra.Command {
	var f founding
	c := &cobra.Command{
		Use: "init --currency CUR", Short: "Make a bank: credential, configuration and ledger", Args: cobra.NoArgs,
		Long: `Makes all that 'ramp bank serve' needs: a credential (agent.pem, agent.key and ca.pem),
unless one is in the directory already, config.yaml, and the ledger with the policy of
each currency as its first entries. --ca is the directory of the authority that
certifies the bank; it is made if it is not there. Nothing is overwritten.`,
		Example: "  ramp bank init --policy barter --currency CPU --dir bank\n  ramp bank serve --dir bank",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.dir, err = dirOf(c, "bank"); err != nil {
				return err
			}
			a, err := f.found(c)
			if err != nil {
				return err
			}
			return said(c, a, "made bank %s in %s, with policy %s in %s\n  next: ramp bank serve --dir %s",
				a.Bank, f.dir, f.policy, f.currencies, f.dir)
		},
	}
	c.Flags().StringArrayVar(&f.currencies, "currency", nil, "a currency that it keeps accounts in; may be given many times")
	c.Flags().StringVar(&f.policy, "policy", "plain", "plain, barter or allowance, of every currency")
	c.Flags().StringVar(&f.decay, "decay", "0", "of an allowance: the part of a balance that decays per day, such as 0.01")
	c.Flags().StringVar(&f.name, "name", "bank", "the bank's name")
	c.Flags().StringVar(&f.ca, "ca", "", "directory of the authority (default: ca in the bank's directory)")
	c.Flags().StringArrayVar(&f.listen, "listen", []string{"/ip4/127.0.0.1/tcp/0"}, "address to listen on; may be given many times")
	_ = c.MarkFlagRequired("currency") // the flag is there: it was made above
	return c
}

// found makes the bank once everything that was asked for makes sense.
func (f founding) found(c *cobra.Command) (initAnswer, error) {
	a := initAnswer{Dir: f.dir}
	var err error
	if a.Policies, err = f.policies(); err != nil {
		return a, err
	}
	for _, name := range []string{configName, ledgerName} {
		if path := filepath.Join(f.dir, name); isThere(path) {
			return a, fail(exitUsage, "choose another directory", "%s is there already", path)
		}
	}
	if a.CA, err = f.credential(); err != nil {
		return a, err
	}
	cfg := config{
		Certificate: "agent.pem", Key: "agent.key", Trust: caCert, Listen: f.listen, Bank: &bankConfig{Currencies: f.currencies},
	}
	if err := cfg.write(f.dir); err != nil {
		return a, fail(exitFailed, "", "%w", err)
	}
	b, err := newBankNode(c.Context(), filepath.Join(f.dir, configName), "", commandLog(stderr(c)), false)
	if err != nil {
		return a, err
	}
	a.Bank = b.cred.ID
	b.run(context.WithoutCancel(c.Context()))
	for _, p := range a.Policies {
		if _, err := b.setPolicy(c.Context(), p); err != nil {
			return a, fmt.Errorf("%w: %w", err, b.stop())
		}
	}
	return a, b.stop()
}

// policies are those of the currencies, which are checked before anything is made.
func (f founding) policies() ([]policyCall, error) {
	var list []policyCall
	seen := map[string]bool{}
	for _, currency := range f.currencies {
		if !regexp.MustCompile(currencyPattern).MatchString(currency) || seen[currency] {
			return nil, fail(exitUsage, "", "--currency %q: want 3..8 capital letters, each currency once", currency)
		}
		seen[currency] = true
		p, err := policyOf(currency, f.policy, f.decay)
		if err != nil {
			return nil, err
		}
		if (p.Policy == "allowance") != (p.Decay > 0) {
			return nil, fail(exitUsage, "", "--decay %s with policy %s: an allowance has one above zero, the others none", f.decay, f.policy)
		}
		list = append(list, p)
	}
	return list, nil
}

// credential makes a credential unless there is one, and says by whom.
func (f founding) credential() (string, error) {
	if isThere(filepath.Join(f.dir, "agent.pem")) {
		return "", nil
	}
	dir := f.ca
	if dir == "" {
		dir = filepath.Join(f.dir, "ca")
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", fail(exitUsage, "", "%w", err)
	}
	ca, err := authorityAt(dir)
	if err != nil {
		return "", err
	}
	_, err = issue(ca, f.name, leafLifetime, f.dir)
	return dir, err
}

// authorityAt reads the authority of a directory, or makes one.
func authorityAt(dir string) (*identity.CA, error) {
	if isThere(filepath.Join(dir, caCert)) {
		return readCA(dir)
	}
	ca, err := identity.NewCA("ramp-ca", time.Now(), caLifetime, rand.Reader)
	if err != nil {
		return nil, err
	}
	return ca, writeCA(dir, ca)
}
