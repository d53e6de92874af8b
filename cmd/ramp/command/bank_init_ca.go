package command

import (
	"crypto"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ramp/protocol/identity"
)

// credential makes a credential unless there is one, and says by whom. It goes on
// with a key that is there without its certificate.
func (f founding) credential() (string, error) {
	dir := f.ca
	if dir == "" {
		dir = filepath.Join(f.dir, "ca")
	}
	if isThere(filepath.Join(f.dir, agentCert)) {
		if isThere(filepath.Join(dir, caKey)) {
			return dir, nil
		}
		return "", nil
	}
	ca, err := authorityAt(dir)
	if err != nil {
		return "", err
	}
	key, err := (&joining{dir: f.dir}).ownKey()
	if err != nil {
		return "", err
	}
	cert, err := ca.Issue(f.name, key.Public(), time.Now(), leafLifetime)
	if err != nil {
		return "", fail(exitUsage, "", "%w", err)
	}
	if err := putFile(filepath.Join(f.dir, caCert), ca.CertPEM(), 0o644); err != nil {
		return "", err
	}
	return dir, putFile(filepath.Join(f.dir, agentCert), cert, 0o644)
}

// authorityAt reads the authority of a directory, or makes one. A key without its
// certificate is of a try that was interrupted, and is gone on with.
func authorityAt(dir string) (*identity.CA, error) {
	if isThere(filepath.Join(dir, caCert)) {
		return readCA(dir)
	}
	return makeAuthority(dir, "ramp-ca", caLifetime)
}

// makeAuthority makes an authority in a directory.
func makeAuthority(dir, name string, lifetime time.Duration) (*identity.CA, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	path := filepath.Join(dir, caKey)
	b, err := os.ReadFile(path)
	var key crypto.Signer
	if errors.Is(err, fs.ErrNotExist) {
		key, err = newKeyAt(path)
	} else if err == nil {
		key, err = identity.ParseKey(b)
	}
	if err != nil {
		return nil, fail(exitUsage, "", "key of the authority: %w", err)
	}
	ca, err := identity.Root(key, name, time.Now(), lifetime)
	if err != nil {
		return nil, fail(exitUsage, "", "%w", err)
	}
	return ca, putFile(filepath.Join(dir, caCert), ca.CertPEM(), 0o644)
}
