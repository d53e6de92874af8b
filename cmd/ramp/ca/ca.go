// Package ca has the commands of a certificate authority.
package ca

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/identity"
)

func New() *cobra.Command {
	c := &cobra.Command{
		Use: "ca", Short: "Run a small certificate authority for a market", GroupID: "trade",
		Long: `The members of a market need credentials that the others trust. 'ramp ca' keeps an authority in
a directory: ca.pem (give it to everybody), ca.key (keep it secret) and revoked.pem (the
revocation list). PEM credentials of another authority work as well: P-256, P-384, or RSA of at
least 2048 bits.`,
	}
	c.PersistentFlags().String("dir", ".", "`DIR` of the authority")
	cli.Add(c, newCAInit(), newCARequest(), newCASign(), newCAIssue(), newCARevoke(), newCAShow())
	return c
}

func newCAInit() *cobra.Command {
	var name string
	var lifetime time.Duration
	c := &cobra.Command{
		Use: "init", Short: "Create an authority: ca.pem and ca.key", Args: cobra.NoArgs,
		Long: `Create an authority in --dir: ca.pem, to give to everybody, and ca.key, to keep secret. Nothing
is overwritten. No certificate that it issues outlives its own.`,
		Example: "  ramp ca init --dir ca",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := c.Flags().GetString("dir")
			if err != nil {
				return err
			}
			if err := checkLifetime(lifetime); err != nil {
				return err
			}
			if there := filepath.Join(dir, join.AnchorsFile); config.IsThere(there) {
				return exit.Fail(exit.Usage, "choose another directory", "%s exists already", there)
			}
			if _, err := join.MakeAuthority(dir, name, lifetime); err != nil {
				return err
			}
			return cli.ShowLine(c, map[string]any{"certificate": filepath.Join(dir, join.AnchorsFile), "key": filepath.Join(dir, join.KeyFile)},
				"made %s (give it to everybody) and %s (keep it secret)", filepath.Join(dir, join.AnchorsFile), filepath.Join(dir, join.KeyFile))
		},
	}
	c.Flags().StringVar(&name, "name", "ramp-ca", "common `NAME` of the authority")
	cli.DurationVar(c.Flags(), &lifetime, "lifetime", join.CaLifetime, "how long the authority is valid")
	return c
}

func openCA(c *cobra.Command) (*identity.CA, string, error) {
	dir, err := c.Flags().GetString("dir")
	if err != nil {
		return nil, "", err
	}
	ca, err := join.ReadCA(dir)
	return ca, dir, err
}

func newCAIssue() *cobra.Command {
	var out, request string
	var lifetime time.Duration
	c := &cobra.Command{
		Use: "issue [NAME] --out DIR", Short: "Issue a credential: agent.pem, agent.key and ca.pem",
		Long: `Create a P-256 key for NAME and certify it: writes agent.pem, agent.key and ca.pem to DIR. With
--request the key stays with its owner: the command certifies the PKCS#10 request instead and
writes only agent.pem and ca.pem. If the authority expires sooner than --lifetime, so does the
certificate, and the command says so.`,
		Example: "  ramp ca issue ann --dir ca --out ann",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLifetime(lifetime); err != nil {
				return err
			}
			ca, _, err := openCA(c)
			if err != nil {
				return err
			}
			if (request == "") != (len(args) == 1) {
				return exit.Fail(exit.Usage, "", "give a NAME, or --request FILE")
			}
			var cert []byte
			if request != "" {
				cert, err = signRequest(c, ca, request, lifetime, out)
			} else {
				cert, err = join.Issue(ca, args[0], lifetime, out)
			}
			if err != nil {
				return err
			}
			id, until, err := issued(c, cert, lifetime)
			if err != nil {
				return err
			}
			return cli.ShowLine(c, map[string]any{"agent": id, "dir": out, "not_after": until}, "issued %s in %s", id, out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "write to `DIR`")
	c.Flags().StringVar(&request, "request", "", "certify the PKCS#10 request in `FILE` ('-': standard input) instead of NAME")
	cli.DurationVar(c.Flags(), &lifetime, "lifetime", join.LeafLifetime, "how long the certificate is valid")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

func signRequest(c *cobra.Command, ca *identity.CA, path string, lifetime time.Duration, dir string) ([]byte, error) {
	cert, err := certifyRequest(c, ca, path, lifetime)
	if err != nil {
		return nil, err
	}
	return cert, join.WriteCertificate(ca, dir, cert)
}

func readCertificate(path string) (cert *x509.Certificate, file []byte, err error) {
	if file, err = os.ReadFile(path); err != nil {
		return nil, nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	if cert, err = join.ParseCertificate(file); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return cert, file, nil
}

// lock waits for other commands that change the authority in a directory: of two at once,
// the second would lose what the first revokes.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
}

func newCARevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke CERT...", Short: "Revoke certificates", Args: cobra.MinimumNArgs(1),
		Long: `Revoke certificates of this authority and rewrite revoked.pem in its directory. A bank
that certifies with the authority passes the list on to the market by itself; otherwise copy the
file to one agent, as revoked.pem. Agents that have the list ignore these certificates' owners.`,
		Example: "  ramp ca revoke ann/agent.pem --dir ca",
		RunE: func(c *cobra.Command, args []string) error {
			ca, dir, err := openCA(c)
			if err != nil {
				return err
			}
			var serials []*big.Int
			for _, path := range args {
				cert, _, err := readCertificate(path)
				if err != nil {
					return err
				}
				if cert.IsCA && cert.CheckSignatureFrom(cert) == nil {
					return exit.Fail(exit.Usage, "make another authority ('ramp ca init') and give everybody its ca.pem instead", "%s is the authority itself, which its own list cannot revoke", path)
				}
				if !ca.Issued(cert) {
					return exit.Fail(exit.Usage, "only the authority that issued a certificate can revoke it; 'ramp ca show' names it", "%s was not issued by the authority in %s", path, dir)
				}
				serials = append(serials, cert.SerialNumber)
			}
			unlock, err := lock(dir)
			if err != nil {
				return exit.Fail(exit.Failed, "", "%w", err)
			}
			defer unlock()
			path := filepath.Join(dir, join.RevokedFile)
			previous, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return exit.Fail(exit.Failed, "", "%w", err)
			}
			crl, err := ca.Revoke(previous, serials, time.Now())
			if err != nil {
				return exit.Fail(exit.Usage, "", "%w", err)
			}
			if err := config.ReplaceFile(path, crl, 0o644); err != nil {
				return err
			}
			return cli.ShowLine(c, map[string]any{"revoked": len(serials), "list": path},
				"revoked %d in %s; a bank with this authority passes it on, or copy it to one agent (its directory, as revoked.pem)", len(serials), path)
		},
	}
}
