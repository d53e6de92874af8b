package command

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol/identity"
)

// Files of a certificate authority's directory.
const (
	caCert    = "ca.pem"
	caKey     = "ca.key"
	caRevoked = "revoked.pem"
)

// Lifetimes that the commands give by default.
const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
)

func newCA() *cobra.Command {
	c := &cobra.Command{
		Use:   "ca",
		Short: "Run a small certificate authority for a market",
		Long: `A market needs credentials that its members trust. 'ramp ca' keeps an authority in
a directory: ca.pem (give it to everybody), ca.key (keep it) and revoked.pem (the
revocation list). Existing PEM credentials of another authority work as well: P-256,
P-384 or RSA of at least 2048 bits.`,
	}
	c.PersistentFlags().String("dir", ".", "the authority's directory")
	c.AddCommand(newCAInit(), newCARequest(), newCASign(), newCAIssue(), newCARevoke(), newCAShow())
	return c
}

func newCAInit() *cobra.Command {
	var name string
	var lifetime time.Duration
	c := &cobra.Command{
		Use: "init", Short: "Make an authority: ca.pem and ca.key", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := c.Flags().GetString("dir")
			if err != nil {
				return err
			}
			if err := checkLifetime(lifetime); err != nil {
				return err
			}
			if there := filepath.Join(dir, caCert); isThere(there) {
				return fail(exitUsage, "choose another directory", "%s is there already", there)
			}
			if _, err := makeAuthority(dir, name, lifetime); err != nil {
				return err
			}
			return said(c, map[string]any{"certificate": filepath.Join(dir, caCert), "key": filepath.Join(dir, caKey)},
				"made %s (give it to everybody) and %s (keep it)", filepath.Join(dir, caCert), filepath.Join(dir, caKey))
		},
	}
	c.Flags().StringVar(&name, "name", "ramp-ca", "common name of the authority")
	durationVar(c.Flags(), &lifetime, "lifetime", caLifetime, "how long it is valid")
	return c
}

// writeCA saves a new authority; an existing one is never overwritten.
func writeCA(dir string, ca *identity.CA) error {
	key, err := ca.KeyPEM()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	if err := writeNew(filepath.Join(dir, caKey), key, 0o600); err != nil {
		return err
	}
	return writeNew(filepath.Join(dir, caCert), ca.CertPEM(), 0o644)
}

// writeNew writes a file that must not be there yet.
func writeNew(path string, b []byte, mode os.FileMode) error {
	part := path + ".part"
	if err := errors.Join(os.WriteFile(part, b, mode), os.Chmod(part, mode)); err != nil {
		return errors.Join(cannotWrite(err), os.RemoveAll(part))
	}
	err := os.Link(part, path) // whole or not at all, and never over another
	if errors.Is(err, fs.ErrExist) {
		err = fail(exitUsage, "choose another name, or remove it first", "%s is there already", path)
	} else if err != nil {
		err = cannotWrite(err)
	}
	return errors.Join(err, os.Remove(part))
}

// cannotWrite tells a path that was badly chosen from a disk that does not take more.
func cannotWrite(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) {
		return fail(exitUsage, "", "%w", err)
	}
	return err
}

// said prints a result: as JSON, or in words.
func said(c *cobra.Command, v any, format string, args ...any) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), v)
	}
	_, err := fmt.Fprintf(stdout(c), format+"\n", args...)
	return err
}

func openCA(c *cobra.Command) (*identity.CA, string, error) {
	dir, err := c.Flags().GetString("dir")
	if err != nil {
		return nil, "", err
	}
	ca, err := readCA(dir)
	return ca, dir, err
}

// readCA reads the authority of a directory.
func readCA(dir string) (*identity.CA, error) {
	cert, err := os.ReadFile(filepath.Join(dir, caCert))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitUsage, "'ramp ca init --dir "+shellWord(dir)+"' makes one", "no authority: %w", err)
	}
	if err != nil {
		return nil, fail(exitUsage, "", "certificate of the authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, caKey))
	if err != nil {
		return nil, fail(exitUsage, "", "no key of the authority: %w", err)
	}
	ca, err := identity.ParseCA(cert, key)
	if err != nil {
		return nil, fail(exitUsage, "", "authority in %s: %w", dir, err)
	}
	return ca, nil
}

func newCAIssue() *cobra.Command {
	var out, request string
	var lifetime time.Duration
	c := &cobra.Command{
		Use: "issue [NAME] --out DIR", Short: "Issue a credential: agent.pem and agent.key (and ca.pem)",
		Long: `Issues a certificate for NAME and writes agent.pem, agent.key and ca.pem to DIR. With
--request FILE the key stays with its owner: the PKCS#10 request is certified, and
only agent.pem and ca.pem are written.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLifetime(lifetime); err != nil {
				return err
			}
			ca, _, err := openCA(c)
			if err != nil {
				return err
			}
			if (request == "") != (len(args) == 1) {
				return fail(exitUsage, "", "give a NAME, or --request FILE")
			}
			var cert []byte
			if request != "" {
				cert, err = signRequest(c, ca, request, lifetime, out)
			} else {
				cert, err = issue(ca, args[0], lifetime, out)
			}
			if err != nil {
				return err
			}
			id, err := certificateID(cert)
			if err != nil {
				return err
			}
			until, err := goodUntil(c, cert, lifetime)
			if err != nil {
				return err
			}
			return said(c, map[string]any{"agent": id, "dir": out, "not_after": until}, "issued %s in %s", id, out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write to")
	c.Flags().StringVar(&request, "request", "", "PKCS#10 request to certify ('-': standard input)")
	durationVar(c.Flags(), &lifetime, "lifetime", leafLifetime, "how long the certificate is valid")
	_ = c.MarkFlagRequired("out") // the flag is there: it was made above
	return c
}

// issue makes a key and its certificate in a directory. A key without its certificate
// is of a try that was interrupted, or awaits one, and is kept.
func issue(ca *identity.CA, name string, lifetime time.Duration, dir string) ([]byte, error) {
	if path := filepath.Join(dir, agentCert); isThere(path) {
		return nil, fail(exitUsage, "choose another directory, or remove it first", "%s is there already, with %s", path, filepath.Join(dir, agentKey))
	}
	if isThere(filepath.Join(dir, agentKey)) {
		j := joining{dir: dir, name: name}
		key, err := j.ownKey()
		if err != nil {
			return nil, err
		}
		return certify(ca, name, lifetime, dir, key)
	}
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	keyPEM, err := identity.KeyPEM(key)
	if err != nil {
		return nil, err
	}
	if _, err := ca.Issue(name, key.Public(), time.Now(), lifetime); err != nil { // before anything is written
		return nil, fail(exitUsage, "", "%w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	if err := writeNew(filepath.Join(dir, agentKey), keyPEM, 0o600); err != nil {
		return nil, err
	}
	return certify(ca, name, lifetime, dir, key)
}

func certify(ca *identity.CA, name string, lifetime time.Duration, dir string, key crypto.Signer) ([]byte, error) {
	cert, err := ca.Issue(name, key.Public(), time.Now(), lifetime)
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	return cert, writeCertificate(ca, dir, cert)
}

func signRequest(c *cobra.Command, ca *identity.CA, path string, lifetime time.Duration, dir string) ([]byte, error) {
	cert, err := certifyRequest(c, ca, path, lifetime)
	if err != nil {
		return nil, err
	}
	return cert, writeCertificate(ca, dir, cert)
}

// writeCertificate writes a certificate behind the anchors: once it is there, all is.
func writeCertificate(ca *identity.CA, dir string, cert []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, caCert), ca.CertPEM(), 0o644); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	return writeNew(filepath.Join(dir, agentCert), cert, 0o644)
}

// parseCertificate reads the first certificate of a PEM file's contents; what else
// is in it, such as a key, is passed over.
func parseCertificate(b []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(b)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, fail(exitUsage, "", "no PEM certificate: want -----BEGIN CERTIFICATE-----")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fail(exitUsage, "", "certificate: %w", err)
	}
	return cert, nil
}

func certificateID(b []byte) (string, error) {
	cert, err := parseCertificate(b)
	if err != nil {
		return "", err
	}
	id, err := identity.ID(cert)
	if err != nil {
		return "", fail(exitUsage, "", "%w", err)
	}
	return string(id), nil
}

func newCARevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke CERT...", Short: "Revoke certificates: rewrites revoked.pem", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ca, dir, err := openCA(c)
			if err != nil {
				return err
			}
			var serials []*big.Int
			for _, path := range args {
				b, err := os.ReadFile(path)
				if err != nil {
					return fail(exitUsage, "", "%w", err)
				}
				cert, err := parseCertificate(b)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				if cert.IsCA && cert.CheckSignatureFrom(cert) == nil {
					return fail(exitUsage, "make another authority ('ramp ca init') and give everybody its ca.pem instead", "%s is the authority itself, which no list of its own revokes", path)
				}
				if !ca.Issued(cert) {
					return fail(exitUsage, "the authority that has issued a certificate revokes it: 'ramp ca show' names it", "%s is not of the authority in %s", path, dir)
				}
				serials = append(serials, cert.SerialNumber)
			}
			path := filepath.Join(dir, caRevoked)
			previous, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fail(exitFailed, "", "%w", err)
			}
			crl, err := ca.Revoke(previous, serials, time.Now())
			if err != nil {
				return fail(exitUsage, "", "%w", err)
			}
			if err := replaceFile(path, crl, 0o644); err != nil {
				return err
			}
			return said(c, map[string]any{"revoked": len(serials), "list": path},
				"revoked %d; give %s to every agent (its directory, as revoked.pem)", len(serials), path)
		},
	}
}

// replaceFile writes a file so that a reader sees the old or the new one whole.
func replaceFile(path string, b []byte, mode os.FileMode) error {
	err := os.WriteFile(path+".new", b, mode)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new") // it may not be there
		return fail(exitFailed, "", "%w", err)
	}
	return nil
}
