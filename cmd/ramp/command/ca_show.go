package command

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol/identity"
)

// shownCert is what ca show tells of a certificate.
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
	Why      string    `json:"why,omitempty"` // it does not count
}

func newCAShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [CERT...]", Short: "Show certificates, and whether they count (default: the authority's own)", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := c.Flags().GetString("dir")
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{filepath.Join(dir, caCert)}
			}
			trust, err := authorityTrust(dir)
			if err != nil {
				return err
			}
			var list []shownCert
			for _, path := range args {
				b, err := os.ReadFile(path)
				if err != nil {
					return fail(exitUsage, "", "%w", err)
				}
				cert, err := parseCertificate(b)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				list = append(list, showCert(path, cert).judged(counts(cert, b, trust, time.Now())))
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			for i, s := range list {
				if i > 0 {
					fmt.Fprintln(stdout(c))
				}
				table(stdout(c), []string{"file", s.File}, []string{"agent", orDash(s.Agent)}, []string{"subject", s.Subject},
					[]string{"issuer", s.Issuer}, []string{"serial", s.Serial}, []string{"key", s.Key},
					[]string{"valid until", s.NotAfter.Format(time.RFC3339)}, []string{"counts", s.countsWords(trust)})
			}
			return nil
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

// authorityTrust is the authority of a directory with its revocation list; nil if
// there is none.
func authorityTrust(dir string) (*identity.Trust, error) {
	anchors, err := os.ReadFile(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	crl, err := os.ReadFile(filepath.Join(dir, caRevoked))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitUsage, "", "%w", err)
	}
	trust, err := identity.NewTrust(anchors, crl)
	if err != nil {
		return nil, fail(exitUsage, "", "%s: %w", dir, err)
	}
	return trust, nil
}

// counts reports why a certificate does not count: by itself, and for who trusts
// the authority that is at hand.
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

// countsWords says whether it counts, and for whom.
func (s shownCert) countsWords(trust *identity.Trust) string {
	switch {
	case !s.Counts:
		return "no: " + s.Why
	case s.CA:
		return "yes"
	case trust == nil:
		return "yes, where its issuer is trusted (--dir DIR of an authority looks closer)"
	}
	return "yes"
}

// keyWords says what kind of key it is.
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
