package join

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol/identity"
)

// AuthorityAt reads the authority of a directory, or makes one. It completes an interrupted
// attempt, which left a key without a certificate.
func AuthorityAt(dir string) (*identity.CA, error) {
	if config.IsThere(filepath.Join(dir, AnchorsFile)) {
		return ReadCA(dir)
	}
	return MakeAuthority(dir, "ramp-ca", CaLifetime)
}

// MakeAuthority makes an authority in a directory.
func MakeAuthority(dir, name string, lifetime time.Duration) (*identity.CA, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	path := filepath.Join(dir, KeyFile)
	b, err := os.ReadFile(path)
	var key crypto.Signer
	if errors.Is(err, fs.ErrNotExist) {
		key, err = newKeyAt(path)
	} else if err == nil {
		key, err = identity.ParseKey(b)
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "key of the authority: %w", err)
	}
	ca, err := identity.Root(key, name, time.Now(), lifetime)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	return ca, PutFile(filepath.Join(dir, AnchorsFile), ca.CertPEM(), 0o644)
}

// Files of a certificate authority's directory.
const (
	AnchorsFile = "ca.pem"
	KeyFile     = "ca.key"
	RevokedFile = "revoked.pem"
)

// Default lifetimes of certificates.
const (
	CaLifetime   = 10 * 365 * 24 * time.Hour
	LeafLifetime = 365 * 24 * time.Hour
)

// WriteCA saves a new authority. It never overwrites an existing one.
func WriteCA(dir string, ca *identity.CA) error {
	key, err := ca.KeyPEM()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := WriteNew(filepath.Join(dir, KeyFile), key, 0o600); err != nil {
		return err
	}
	return WriteNew(filepath.Join(dir, AnchorsFile), ca.CertPEM(), 0o644)
}

// WriteNew writes a file that must not exist yet.
func WriteNew(path string, b []byte, mode os.FileMode) error {
	part := path + ".part"
	err := os.WriteFile(part, b, mode)
	if err == nil {
		err = os.Chmod(part, mode)
	}
	if err != nil {
		return errors.Join(cannotWrite(err), os.RemoveAll(part))
	}
	err = os.Link(part, path) // whole or not at all, and never over another file
	if errors.Is(err, fs.ErrExist) {
		err = exit.Fail(exit.Usage, "choose another name, or remove it first", "%s exists already", path)
	} else if err != nil {
		err = cannotWrite(err)
	}
	return errors.Join(err, os.Remove(part))
}

// cannotWrite makes a badly chosen path a usage error, unlike a full disk.
func cannotWrite(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	return err
}

// ReadCA reads the authority of a directory.
func ReadCA(dir string) (*identity.CA, error) {
	cert, err := os.ReadFile(filepath.Join(dir, AnchorsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Fail(exit.Usage, "'ramp ca init --dir "+words.ShellWord(dir)+"' makes one", "no authority: %w", err)
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "certificate of the authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "no key of the authority: %w", err)
	}
	ca, err := identity.ParseCA(cert, key)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "authority in %s: %w", dir, err)
	}
	return ca, nil
}

// Issue makes a key and its certificate in a directory. It keeps a key without certificate,
// which an interrupted attempt or a pending request left.
func Issue(ca *identity.CA, name string, lifetime time.Duration, dir string) ([]byte, error) {
	if path := filepath.Join(dir, CertificateFile); config.IsThere(path) {
		return nil, exit.Fail(exit.Usage, "choose another directory, or remove it first", "%s exists already, with %s", path, filepath.Join(dir, AgentKeyFile))
	}
	if config.IsThere(filepath.Join(dir, AgentKeyFile)) {
		j := Joining{Dir: dir, Name: name}
		key, err := j.OwnKey()
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
	if _, err := ca.Issue(name, key.Public(), time.Now(), lifetime); err != nil { // check before writing anything
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := WriteNew(filepath.Join(dir, AgentKeyFile), keyPEM, 0o600); err != nil {
		return nil, err
	}
	return certify(ca, name, lifetime, dir, key)
}

func certify(ca *identity.CA, name string, lifetime time.Duration, dir string, key crypto.Signer) ([]byte, error) {
	cert, err := ca.Issue(name, key.Public(), time.Now(), lifetime)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	return cert, WriteCertificate(ca, dir, cert)
}

// WriteCertificate writes the anchors, then the certificate, whose presence shows that the
// credential is complete.
func WriteCertificate(ca *identity.CA, dir string, cert []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, AnchorsFile), ca.CertPEM(), 0o644); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	return WriteNew(filepath.Join(dir, CertificateFile), cert, 0o644)
}

// ParseCertificate reads the first certificate in PEM text and skips anything else, such as a key.
func ParseCertificate(b []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(b)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, exit.Fail(exit.Usage, "", "no PEM certificate: want -----BEGIN CERTIFICATE-----")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "certificate: %w", err)
	}
	return cert, nil
}

func CertificateID(b []byte) (string, error) {
	cert, err := ParseCertificate(b)
	if err != nil {
		return "", err
	}
	id, err := identity.ID(cert)
	if err != nil {
		return "", exit.Fail(exit.Usage, "", "%w", err)
	}
	return string(id), nil
}

// MaxCSR bounds a certificate request, in bytes.
const MaxCSR = 1 << 16
