package command

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd"
	"ramp/protocol/contract"
)

// mirrorName is this machine's copy of a ledger in a cluster.
const mirrorName = "mirror.db"

// commandWait is how long a command waits to lead: the lease of an agent that
// died has ended by then.
const commandWait = 2 * ledgeretcd.LeaseTime

const etcdPort = "2379"

// books are an open ledger.
type books struct {
	store store
	db    *ledgerdb.DB    // for reading
	leads func() bool     // nil: nobody else can write
	lost  <-chan struct{} // closed when another may write; nil: never
}

// openBooks opens the ledger where the configuration says it is.
func (n *node) openBooks(ctx context.Context, wait bool) (books, error) {
	kind, where, _ := strings.Cut(n.cfg.Bank.Store, ":")
	switch {
	case n.cfg.Bank.Store == "":
		return n.openFile(filepath.Join(n.cfg.dir, ledgerName))
	case kind == "bbolt" && where != "":
		return n.openFile(n.cfg.path(where))
	case kind == "etcd" && where != "":
		return n.openCluster(ctx, strings.Split(where, ","), wait)
	}
	return books{}, fail(exitUsage, "", "bank.store: %q: want bbolt:PATH or etcd:HOST,HOST", n.cfg.Bank.Store)
}

func (n *node) openFile(path string) (books, error) {
	db, err := patiently(func() (*ledgerdb.DB, error) { return ledgerdb.Open(path) })
	if err != nil {
		return books{}, journalError(err)
	}
	if head, ok := db.Head(); ok && head.Bank != n.cred.ID {
		err := fail(exitUsage, "", "ledger %s is of %s, this bank is %s", path, head.Bank, n.cred.ID)
		return books{}, errors.Join(err, db.Close())
	}
	db.SignHeads(n.signHead)
	return books{store: db, db: db}, nil
}

func (n *node) signHead(h contract.Head) ([]byte, error) { return contract.SignHead(n.cred, h) }

// openCluster waits until this agent leads: a daemon for as long as it takes.
func (n *node) openCluster(ctx context.Context, hosts []string, wait bool) (books, error) {
	cfg, err := n.clusterConfig(hosts)
	if err != nil {
		return books{}, err
	}
	if !wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandWait)
		defer cancel()
	}
	open := ledgeretcd.Open
	if wait {
		open = n.follow
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return books{}, clusterError(err)
	}
	return books{store: s, db: s.DB(), leads: s.Leading, lost: s.Lost()}, nil
}

// clusterError says what to do about a ledger in a cluster that cannot be opened.
func clusterError(err error) error {
	switch {
	case errors.Is(err, ledgeretcd.ErrLed):
		return fail(exitFailed, "give the command on the machine of the one who leads", "%w", err)
	case errors.Is(err, ledgeretcd.ErrForeign):
		return fail(exitFailed, "move the file away to build it anew from the cluster's journal; docs/CLUSTER.md", "%w", err)
	case errors.Is(err, ledgeretcd.ErrUnfinished):
		return fail(exitFailed, "give 'ramp bank restore' again; it says what to remove first", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(exitFailed, "look at the etcd cluster: 'etcdctl endpoint status --cluster'", "%w", err)
	case err != nil:
		return journalError(err)
	}
	return nil
}

func (n *node) clusterConfig(hosts []string) (ledgeretcd.Config, error) {
	cfg := ledgeretcd.Config{
		Bank: n.cred.ID, Name: agentPlace(n.cfg.dir), Mirror: filepath.Join(n.cfg.dir, mirrorName), Sign: n.signHead, Log: n.log,
	}
	var named bool
	if cfg.Endpoints, named = endpoints(hosts); !named {
		return cfg, fail(exitUsage, "", "bank.store: %q: want etcd:HOST,HOST, each with a name, and a port of 1..65535 or none", n.cfg.Bank.Store)
	}
	ledger := filepath.Join(n.cfg.dir, ledgerName)
	if _, err := os.Stat(ledger); !errors.Is(err, fs.ErrNotExist) {
		return cfg, fail(exitUsage, "move it away; 'ramp bank restore FILE' takes it into the cluster, and otherwise its accounts begin anew", "the bank has a ledger in a file, %s", ledger)
	}
	var err error
	cfg.TLS, err = n.clusterTLS()
	return cfg, err
}

// endpoints completes hosts; false: one has no name, or a port that is none.
func endpoints(hosts []string) (list []string, named bool) {
	for _, h := range hosts {
		if h = strings.TrimSpace(h); h == "" {
			return nil, false
		}
		e := endpoint(h)
		_, address, url := strings.Cut(e, "://")
		if !url {
			address = e
		}
		if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || !isPort(port)) {
			return nil, false
		}
		list = append(list, e)
	}
	return list, true
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// endpoint completes HOST with etcd's port.
func endpoint(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), etcdPort)
}

// agentPlace says where an agent is, to the others of its bank.
func agentPlace(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return host + ":" + dir + " since " + time.Now().UTC().Format(time.RFC3339)
}

// clusterTLS is nil if the configuration says nothing about it.
func (n *node) clusterTLS() (*tls.Config, error) {
	e := n.cfg.Bank.Etcd
	if e == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(n.cfg.path(e.Anchors))
	if err != nil {
		return nil, fail(exitUsage, "", "bank.etcd.anchors: %w", err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !t.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fail(exitUsage, "", "bank.etcd.anchors: no certificate in %s", n.cfg.path(e.Anchors))
	}
	if e.Certificate == "" {
		return t, nil
	}
	own, err := tls.LoadX509KeyPair(n.cfg.path(e.Certificate), n.cfg.path(e.Key))
	if err != nil {
		return nil, fail(exitUsage, "", "bank.etcd.certificate and key: %w", err)
	}
	t.Certificates = []tls.Certificate{own}
	return t, nil
}
