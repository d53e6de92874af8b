package bank

import (
	"cmp"
	"path/filepath"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/join"
)

// credential makes a credential unless there is one, and returns the directory of the authority. If
// there is a key without a certificate, it certifies that key.
func (f founding) credential() (string, error) {
	dir := cmp.Or(f.ca, filepath.Join(f.dir, "ca"))
	if config.IsThere(filepath.Join(f.dir, join.CertificateFile)) {
		if config.IsThere(filepath.Join(dir, join.KeyFile)) {
			return dir, nil
		}
		return "", nil
	}
	ca, err := join.AuthorityAt(dir)
	if err != nil {
		return "", err
	}
	key, err := (&join.Joining{Dir: f.dir}).OwnKey()
	if err != nil {
		return "", err
	}
	cert, err := ca.Issue(f.name, key.Public(), time.Now(), join.LeafLifetime)
	if err != nil {
		return "", exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := join.PutFile(filepath.Join(f.dir, join.AnchorsFile), ca.CertPEM(), 0o644); err != nil {
		return "", err
	}
	return dir, join.PutFile(filepath.Join(f.dir, join.CertificateFile), cert, 0o644)
}
