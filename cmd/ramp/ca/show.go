package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/identity"
)

// shownCert is a certificate in the answer of ca show.
type shownCert struct {
	File     string    `json:"file"`
	Agent    string    `json:"agent,omitempty"`
	Subject  string    `json:"subject"`
	Issuer   string    `json:"issuer"`
	Serial   string    `json:"serial"`
	Key      string    `json:"key"`
	NotAfter time.Time `json:"not_after"`
	CA       bool      `json:"ca"`
	Counts   bool      `json:"counts"`        // an agent may sign with it now, or an authority issue by it
	Why      string    `json:"why,omitempty"` // why it does not count
}

func newCAShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [CERT...]", Short: "Show certificates and whether they are valid", Args: cobra.ArbitraryArgs,
		Long: `Show certificates (default: the authority's own): their owner, issuer and expiry, and whether
they are valid now by key, usage and time. With an authority in --dir, also check that they lead
to it and are not revoked.`,
		Example: "  ramp ca show ann/agent.pem",
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := c.Flags().GetString("dir")
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{filepath.Join(dir, join.AnchorsFile)}
			}
			trust, err := authorityTrust(dir)
			if err != nil {
				return err
			}
			var list []shownCert
			for _, path := range args {
				cert, b, err := readCertificate(path)
				if err != nil {
					return err
				}
				list = append(list, showCert(path, cert).judged(counts(cert, b, trust, time.Now())))
			}
			return cli.Show(c, list, func(w io.Writer) {
				for i, s := range list {
					if i > 0 {
						fmt.Fprintln(w)
					}
					cli.Table(w, []string{"file", s.File}, []string{"agent", words.OrDash(s.Agent)}, []string{"subject", s.Subject},
						[]string{"issuer", s.Issuer}, []string{"serial", s.Serial}, []string{"key", s.Key},
						[]string{"valid until", words.Moment(s.NotAfter)}, []string{"counts", s.countsWords(trust)})
				}
			})
		},
	}
}

func showCert(path string, cert *x509.Certificate) shownCert {
	s := shownCert{
		File: path, Subject: cert.Subject.String(), Issuer: cert.Issuer.String(),
		Serial: cert.SerialNumber.Text(16), Key: keyWords(cert.PublicKey), NotAfter: cert.NotAfter.UTC(), CA: cert.IsCA,
	}
	if id, err := identity.ID(cert); err == nil && !cert.IsCA {
		s.Agent = string(id)
	}
	return s
}

// authorityTrust trusts the authority of a directory, with its revocation list; nil if the directory
// has none.
func authorityTrust(dir string) (*identity.Trust, error) {
	anchors, err := os.ReadFile(filepath.Join(dir, join.AnchorsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	crl, err := os.ReadFile(filepath.Join(dir, join.RevokedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	trust, err := identity.NewTrust(anchors, crl)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%s: %w", dir, err)
	}
	return trust, nil
}

// counts returns why a certificate does not count: by itself, or for those who trust this authority.
func counts(cert *x509.Certificate, file []byte, trust *identity.Trust, now time.Time) error {
	if cert.IsCA {
		return identity.Current(cert, now)
	}
	if trust == nil {
		return identity.Usable(cert, now)
	}
	_, err := trust.VerifyPEM(file, now)
	return err
}

func (s shownCert) judged(err error) shownCert {
	s.Counts = err == nil
	if err != nil {
		s.Why = err.Error()
	}
	return s
}

// countsWords say whether it counts, and for whom.
func (s shownCert) countsWords(trust *identity.Trust) string {
	switch {
	case !s.Counts:
		return "no: " + s.Why
	case s.CA:
		return "yes"
	case trust == nil:
		return "yes, where its issuer is trusted (give the authority's --dir DIR to check that too)"
	}
	return "yes"
}

func keyWords(pub crypto.PublicKey) string {
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", k.N.BitLen())
	case ed25519.PublicKey:
		return "Ed25519"
	case nil: // crypto/x509 does not know it
		return "unknown"
	}
	return fmt.Sprintf("%T", pub)
}
