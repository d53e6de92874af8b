package config

import (
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ramp/protocol/identity"
)

// HeardName is the file of the revocation lists that other agents have passed on.
const HeardName = "revoked-heard.pem"

// authorityList is the list of the authority whose key a bank has, which 'ramp ca revoke' rewrites.
const authorityList = "revoked.pem"

// lists are the files with revocation lists that people write.
func (c *Config) lists() []string {
	files := []string{c.Path(c.Revoked)}
	if c.Bank != nil && c.Bank.Enrol != nil {
		files = append(files, filepath.Join(c.Path(c.Bank.Enrol.Authority), authorityList))
	}
	return files
}

// readLists reads those of some files that exist.
func readLists(files ...string) (all [][]byte, err error) {
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// ofAuthorities are those of some lists that an authority among the anchors has signed: one that others
// have passed on may be of one that is no longer trusted.
func ofAuthorities(anchors []byte, files [][]byte) (lists [][]byte) {
	for block, rest := pem.Decode(slices.Concat(files...)); block != nil; block, rest = pem.Decode(rest) {
		list := pem.EncodeToMemory(block)
		if _, err := identity.NewTrust(anchors, list); err == nil {
			lists = append(lists, list)
		}
	}
	return lists
}

// Revocations keeps an agent's revocation lists up to date: with its files, and with the
// newer lists that other agents pass on.
type Revocations struct {
	cfg   *Config
	cred  *identity.Credential
	trust *identity.Trust

	mu      sync.Mutex
	seen    []time.Time // when the files were changed last
	unsaved []byte      // lists (PEM) that count, though they are not on disk
}

// Revocations are those of an agent, whose trust they change.
func (c *Config) Revocations(cred *identity.Credential, trust *identity.Trust) *Revocations {
	r := &Revocations{cfg: c, cred: cred, trust: trust}
	r.seen = r.changes()
	return r
}

func (r *Revocations) changes() []time.Time {
	var all []time.Time
	for _, file := range r.cfg.lists() {
		at := time.Time{}
		if info, err := os.Stat(file); err == nil {
			at = info.ModTime()
		}
		all = append(all, at)
	}
	return all
}

// Lists are the newest lists of each authority, in DER.
func (r *Revocations) Lists() [][]byte { return r.trust.Newest() }

// Refresh reads the files again if one has changed since.
func (r *Revocations) Refresh() (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.changes()
	if slices.EqualFunc(now, r.seen, time.Time.Equal) {
		return false, r.save()
	}
	r.seen = now
	if err := r.read(); err != nil {
		return true, err
	}
	return true, r.save()
}

// Adopt takes over those of some lists that are newer than this agent's and signed by one
// of its authorities, and keeps them for the next start. They count even if the disk is full:
// then changed is true beside the error, and Refresh tries to keep them again.
func (r *Revocations) Adopt(lists [][]byte) (changed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := r.trust.Newest()
	for _, der := range lists {
		newer, err := r.trust.Newer(der, time.Now())
		if errors.Is(err, identity.ErrForeign) {
			continue // of an authority that only others trust
		} else if err != nil {
			return false, err
		}
		if newer {
			changed, keep = true, append(keep, der)
		}
	}
	if !changed {
		return false, nil
	}
	before := r.unsaved
	r.unsaved = inPEM(keep)
	if err := r.read(); err != nil {
		r.unsaved = before
		return false, err
	}
	return true, r.save()
}

func inPEM(lists [][]byte) (file []byte) {
	for _, der := range lists {
		file = append(file, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})...)
	}
	return file
}

// save keeps what is not on disk.
func (r *Revocations) save() error {
	if r.unsaved == nil {
		return nil
	}
	err := ReplaceFile(filepath.Join(r.cfg.Dir, HeardName), inPEM(r.trust.Newest()), 0o600)
	if err == nil {
		r.unsaved = nil
	}
	return err
}

// read reads all lists. It changes nothing if they would revoke the agent itself.
func (r *Revocations) read() error {
	t, err := r.cfg.TrustAnchors(r.unsaved)
	if err != nil {
		return err
	}
	if _, err := t.Verify(r.cred.ChainDER(), time.Now()); err != nil {
		return err
	}
	r.trust.Replace(t)
	return nil
}
