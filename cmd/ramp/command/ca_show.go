package command

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
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
}

func newCAShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [CERT...]", Short: "Show certificates (default: the authority's own)", Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				dir, err := c.Flags().GetString("dir")
				if err != nil {
					return err
				}
				args = []string{filepath.Join(dir, caCert)}
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
				list = append(list, showCert(path, cert))
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			for _, s := range list {
				table(stdout(c), []string{"file", s.File}, []string{"agent", orDash(s.Agent)}, []string{"subject", s.Subject},
					[]string{"issuer", s.Issuer}, []string{"serial", s.Serial}, []string{"key", s.Key},
					[]string{"valid until", s.NotAfter.Format(time.RFC3339)})
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

// keyWords says what kind of key it is.
func keyWords(pub crypto.PublicKey) string {
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", k.N.BitLen())
	}
	return fmt.Sprintf("%T", pub)
}
