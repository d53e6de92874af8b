package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd"
	"ramp/protocol/contract"
)

// CommandWait is how long a command waits to lead: the lease of an agent that
// died has ended by then.
const CommandWait = 2 * ledgeretcd.LeaseTime

// openedLedger is where a bank's entries are.
type openedLedger struct {
	store store
	db    *ledgerdb.DB    // for reading
	leads func() bool     // nil: nobody else can write
	lost  <-chan struct{} // closed when another may write; nil: never
}

// openLedger opens the ledger, and audits it if its disk has failed.
func (n *Node) openLedger(ctx context.Context, wait bool) (openedLedger, error) {
	o, err := n.openStore(ctx, wait)
	if err != nil {
		return o, err
	}
	if err := n.auditSuspect(o.db); err != nil {
		return o, errors.Join(err, o.store.Close())
	}
	return o, nil
}

// openStore opens the ledger where the configuration says it is.
func (n *Node) openStore(ctx context.Context, wait bool) (openedLedger, error) {
	kind, where, _ := strings.Cut(n.Cfg.Bank.Store, ":")
	switch {
	case n.Cfg.Bank.Store == "":
		return n.openFile(filepath.Join(n.Cfg.Dir, config.LedgerName))
	case kind == "bbolt" && where != "":
		return n.openFile(n.Cfg.Path(where))
	case kind == "etcd" && where != "":
		return n.openCluster(ctx, strings.Split(where, ","), wait)
	}
	return openedLedger{}, exit.Fail(exit.Usage, "", "bank.store: %q: want bbolt:PATH or etcd:HOST,HOST", n.Cfg.Bank.Store)
}

// openFile opens a ledger in a file. Once 'ramp bank init' has finished, there is one.
func (n *Node) openFile(path string) (openedLedger, error) {
	if err := n.Cfg.LedgerThere(path); err != nil {
		return openedLedger{}, err
	}
	db, err := waitingForCommands(func() (*ledgerdb.DB, error) { return ledgerdb.Open(path) })
	if err != nil {
		return openedLedger{}, JournalError(err)
	}
	if head, ok := db.Head(); ok && head.Bank != n.Cred.ID {
		err := exit.Fail(exit.Usage, "", "ledger %s is of %s, this bank is %s", path, head.Bank, n.Cred.ID)
		return openedLedger{}, errors.Join(err, db.Close())
	}
	db.SignHeads(n.signHead)
	return openedLedger{store: db, db: db}, nil
}

func (n *Node) signHead(h contract.Head) ([]byte, error) { return contract.SignHead(n.Cred, h) }

// openCluster waits until this agent leads: a daemon for as long as it takes.
func (n *Node) openCluster(ctx context.Context, hosts []string, wait bool) (openedLedger, error) {
	cfg, err := n.ClusterConfig(hosts)
	if err != nil {
		return openedLedger{}, err
	}
	if !wait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, CommandWait)
		defer cancel()
	}
	open := ledgeretcd.Open
	if wait {
		open = n.follow
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return openedLedger{}, ClusterError(err)
	}
	return openedLedger{store: s, db: s.DB(), leads: s.Leading, lost: s.Lost()}, nil
}

// ClusterError says what to do about a ledger in a cluster that cannot be opened.
func ClusterError(err error) error {
	switch {
	case errors.Is(err, ledgeretcd.ErrLed):
		return exit.Fail(exit.Failed, "repeat the command on the leader's machine", "%w", err)
	case errors.Is(err, ledgeretcd.ErrForeign), errors.Is(err, boltfile.ErrDamaged):
		return exit.Fail(exit.Failed, "move the file away to build it anew from the cluster's journal; docs/CLUSTER.md", "%w", err)
	case errors.Is(err, ledgeretcd.ErrUnfinished):
		return exit.Fail(exit.Failed, "give 'ramp bank restore' again; it says what to remove first", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return exit.Fail(exit.Failed, "check the etcd cluster: 'etcdctl endpoint status --cluster'", "%w", err)
	}
	return JournalError(err)
}

func (n *Node) ClusterConfig(hosts []string) (ledgeretcd.Config, error) {
	cfg := ledgeretcd.Config{
		Bank: n.Cred.ID, Name: config.AgentPlace(n.Cfg.Dir), Mirror: filepath.Join(n.Cfg.Dir, config.MirrorName), Sign: n.signHead, Log: n.Log,
	}
	var named bool
	if cfg.Endpoints, named = config.Endpoints(hosts); !named {
		return cfg, exit.Fail(exit.Usage, "", "bank.store: %q: want etcd:HOST,HOST, each with a name, and a port of 1..65535 or none", n.Cfg.Bank.Store)
	}
	ledger := filepath.Join(n.Cfg.Dir, config.LedgerName)
	if _, err := os.Stat(ledger); !errors.Is(err, fs.ErrNotExist) {
		return cfg, exit.Fail(exit.Usage, "move it away; 'ramp bank restore FILE' takes it into the cluster, and otherwise its accounts begin anew", "the bank has a ledger in a file, %s", ledger)
	}
	var err error
	cfg.TLS, err = n.clusterTLS()
	return cfg, err
}

// clusterTLS is nil if the configuration says nothing about it.
func (n *Node) clusterTLS() (*tls.Config, error) {
	e := n.Cfg.Bank.Etcd
	if e == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(n.Cfg.Path(e.Anchors))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "bank.etcd.anchors: %w", err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !t.RootCAs.AppendCertsFromPEM(pem) {
		return nil, exit.Fail(exit.Usage, "", "bank.etcd.anchors: no certificate in %s", n.Cfg.Path(e.Anchors))
	}
	if e.Certificate == "" {
		return t, nil
	}
	own, err := tls.LoadX509KeyPair(n.Cfg.Path(e.Certificate), n.Cfg.Path(e.Key))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "bank.etcd.certificate and key: %w", err)
	}
	t.Certificates = []tls.Certificate{own}
	return t, nil
}

func (b *Bank) backup(_ context.Context, q control.BackupCall) (control.BackupAnswer, error) {
	if !filepath.IsAbs(q.File) {
		return control.BackupAnswer{}, exit.Fail(exit.Usage, "", "file %q: want an absolute path", q.File)
	}
	_ = b.db.SealHead(time.Now()) // so that it covers all that is copied; without room for it there is a backup too
	n, err := b.db.Backup(q.File)
	switch {
	case errors.Is(err, fs.ErrExist):
		return control.BackupAnswer{}, exit.Fail(exit.Usage, "a backup never overwrites anything: choose another name", "%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return control.BackupAnswer{}, exit.Fail(exit.Usage, "choose a directory that is there", "%w", err)
	case err != nil:
		return control.BackupAnswer{}, exit.Fail(exit.Failed, exit.PlaceHint(err), "%w", err)
	}
	return control.BackupAnswer{File: q.File, Entries: n}, nil
}
