package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// foundsLedger stands behind what was asked for once init has found the ledger in a
// cluster empty: what is in it then is its own.
const foundsLedger = "founds the ledger\n"

// checkStore refuses a store that 'bank serve' would refuse.
func (f founding) checkStore() error {
	kind, where, _ := strings.Cut(f.store, ":")
	if kind == "etcd" {
		if _, named := endpoints(strings.Split(where, ",")); !named {
			return fail(exitUsage, "", "--store %q: want etcd:HOST,HOST, each with a name, and a port of 1..65535 or none", f.store)
		}
	} else if f.store != "" && (kind != "bbolt" || where == "") {
		return fail(exitUsage, "", "--store %q: want etcd:HOST,HOST or bbolt:PATH", f.store)
	} else if kind == "bbolt" && !f.placeFor(where) {
		return fail(exitUsage, "", "--store %q: want a file in a directory that is there", f.store)
	}
	tls := f.etcd != etcdConfig{}
	switch {
	case tls && kind != "etcd":
		return fail(exitUsage, "", "--etcd-anchors, --etcd-certificate and --etcd-key are of a --store etcd:HOST,HOST")
	case tls && f.etcd.Anchors == "":
		return fail(exitUsage, "", "--etcd-anchors is missing: whose certificates the cluster's are")
	case (f.etcd.Certificate == "") != (f.etcd.Key == ""):
		return fail(exitUsage, "", "--etcd-certificate and --etcd-key: want both or none")
	}
	return nil
}

// placeFor reports whether a ledger can be a file at a path: beside the configuration, or
// in a directory that is there.
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

// storeText is what the configuration says of the ledger's place.
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

// beside is a path as the configuration names it.
func (f founding) beside(path string) string {
	if rel, err := filepath.Rel(f.dir, path); err == nil && !filepath.IsAbs(path) {
		return rel
	}
	return path
}

// founds reports whether the ledger is for init to begin. One in a file is: begin refuses
// another. One in a cluster that has entries is, if an init in this directory began them.
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
	return true, replaceFile(mark, append(b, foundsLedger...), 0o600)
}

// follows tells of an agent whose bank has its ledger in the cluster already.
func (f founding) follows(a *initAnswer) error {
	cfg, err := readConfig(filepath.Join(f.dir, configName))
	if err != nil {
		return err
	}
	cred, err := cfg.credential()
	if err != nil {
		return err
	}
	a.Bank, a.Follows, a.Local, a.Policies = cred.ID, true, onlyLocal(cfg.Listen), []policyCall{}
	return nil
}
