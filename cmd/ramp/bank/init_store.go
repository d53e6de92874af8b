package bank

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/cmd/ramp/cli"
)

// foundsLedger is appended to the mark once init has found the cluster's ledger empty: later entries
// are its own.
const foundsLedger = "founds the ledger\n"

// checkStore rejects a store that 'bank serve' would reject.
func (f founding) checkStore() error {
	kind, where, _ := strings.Cut(f.store, ":")
	if kind == "etcd" {
		if _, named := config.Endpoints(strings.Split(where, ",")); !named {
			return exit.Fail(exit.Usage, "", "--store %q: want etcd:HOST,HOST, each with a name, and a port of 1..65535 or none", f.store)
		}
	} else if f.store != "" && (kind != "bbolt" || where == "") {
		return exit.Fail(exit.Usage, "", "--store %q: want etcd:HOST,HOST or bbolt:PATH", f.store)
	} else if kind == "bbolt" && !f.placeFor(where) {
		return exit.Fail(exit.Usage, "", "--store %q: want a file in an existing directory", f.store)
	}
	tls := f.etcd != config.Etcd{}
	switch {
	case tls && kind != "etcd":
		return exit.Fail(exit.Usage, "", "--etcd-anchors, --etcd-certificate and --etcd-key need --store etcd:HOST,HOST")
	case tls && f.etcd.Anchors == "":
		return exit.Fail(exit.Usage, "", "--etcd-anchors is required: the authority of the cluster's certificates")
	case (f.etcd.Certificate == "") != (f.etcd.Key == ""):
		return exit.Fail(exit.Usage, "", "--etcd-certificate and --etcd-key: give both or neither")
	}
	return nil
}

// placeFor reports whether a ledger can be a file at a path: beside the configuration, or in an
// existing directory.
func (f founding) placeFor(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	in := filepath.Dir(path)
	return !isDir(path) && (isDir(in) || in == filepath.Clean(f.dir))
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// storeText is the section of the configuration about the ledger's store.
func (f founding) storeText() string {
	if f.store == "" {
		return ""
	}
	s := fmt.Sprintf("  # Where the ledger is: docs/CLUSTER.md.\n  store: %q\n", f.store)
	if f.etcd.Anchors == "" {
		return s
	}
	s += fmt.Sprintf("  etcd: {anchors: %q", f.beside(f.etcd.Anchors))
	if f.etcd.Certificate != "" {
		s += fmt.Sprintf(", certificate: %q, key: %q", f.beside(f.etcd.Certificate), f.beside(f.etcd.Key))
	}
	return s + "}\n"
}

// beside is a path relative to the configuration.
func (f founding) beside(path string) string {
	if rel, err := filepath.Rel(f.dir, path); err == nil && !filepath.IsAbs(path) {
		return rel
	}
	return path
}

// founds reports whether init may write the first entries of the ledger. A ledger in a file is new,
// since begin rejects another. One in a cluster must be empty, or begun by an init in this directory.
func (f founding) founds(begun bool) (bool, error) {
	if !strings.HasPrefix(f.store, "etcd:") {
		return true, nil
	}
	mark := filepath.Join(f.dir, unfinishedName)
	b, err := os.ReadFile(mark)
	if err != nil {
		return false, err
	}
	if begun || strings.HasSuffix(string(b), foundsLedger) {
		return strings.HasSuffix(string(b), foundsLedger), nil
	}
	return true, config.ReplaceFile(mark, append(b, foundsLedger...), 0o600)
}

// follows describes an agent whose bank already has its ledger in the cluster.
func (f founding) follows(a *initAnswer) error {
	a.Follows, a.Policies = true, []control.PolicyCall{}
	return f.describe(a)
}

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

// The mark of a directory in which init has begun; it becomes config.FoundedName. It holds what
// was asked for, so that the same command is recognised. The lock belongs to the running command.
const (
	unfinishedName = "init.unfinished"
	foundingName   = "init.lock"
)

// asked describes what was asked for in one line.
func (f founding) asked() string {
	s := fmt.Sprintf("currencies %v, policy %s, decay %s, name %s, authority %q, listen %v, enrol %t",
		f.currencies, f.policy, f.decay, f.name, f.ca, f.listen, f.enrol)
	if f.store != "" {
		s += fmt.Sprintf(", store %q, etcd %+v", f.store, f.etcd)
	}
	return s + "\n"
}

// finished reports whether the same command has finished here before.
func (f founding) finished() bool {
	b, err := os.ReadFile(filepath.Join(f.dir, config.FoundedName))
	return err == nil && strings.TrimSuffix(string(b), foundsLedger) == f.asked()
}

// alone makes the directory, and locks out other commands that would make a bank in it until leave
// is called.
func (f founding) alone() (leave func(), err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, exit.Fail(exit.Usage, "choose another directory with --dir", "%w", err)
	}
	lock, err := cli.LockNote(filepath.Join(f.dir, foundingName))
	switch {
	case err != nil:
		return nil, err
	case lock == nil:
		return nil, exit.Fail(exit.Failed, "repeat the command when the other one has ended", "another command is making a bank in %s", f.dir)
	}
	return func() {
		_ = os.Remove(lock.Name()) // a file that remains is just locked again
		cli.CloseNote(lock)
	}, nil
}

// begin rejects a directory that has a bank, unless an init there is unfinished.
func (f founding) begin() error {
	mark := filepath.Join(f.dir, unfinishedName)
	for _, name := range []string{config.Name, config.LedgerName} {
		if path := filepath.Join(f.dir, name); config.IsThere(path) && !config.IsThere(mark) {
			return exit.Fail(exit.Usage, "choose another directory with --dir", "%s exists already", path)
		}
	}
	if b, err := os.ReadFile(mark); err == nil {
		if strings.TrimSuffix(string(b), foundsLedger) != f.asked() {
			return exit.Fail(exit.Usage, "repeat that command, or choose another directory with --dir", "an unfinished init in %s was begun with %s", f.dir, strings.TrimSpace(string(b)))
		}
		return nil
	}
	return join.PutFile(mark, []byte(f.asked()), 0o600)
}
