package ledgeretcd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// Config describes a ledger in a cluster.
type Config struct {
	Endpoints []string         // of the cluster's members: HOST:PORT or a URL
	TLS       *tls.Config      // nil: without TLS
	Bank      protocol.AgentID // the ledger's
	Name      string           // this agent's, for its followers
	Mirror    string           // path of the local copy
	Sign      ledgerdb.Sign    // signs heads while this agent leads; nil: heads are not signed
	Lease     time.Duration    // whole seconds until others lead when this agent dies; zero: LeaseTime
	Log       *slog.Logger
	// Follows, if set, gets the leader ("": nobody yet) or an error at each poll while
	// this agent does not lead. Only Open calls it.
	Follows func(leader string, err error)
}

// Bounds of a Config.
const (
	MaxEndpoints = 16 // members in a Config
	MaxLease     = time.Minute
)

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case len(c.Endpoints) < 1 || len(c.Endpoints) > MaxEndpoints:
		return fmt.Errorf("ledger in etcd: %d endpoints, want 1..%d", len(c.Endpoints), MaxEndpoints)
	case c.Mirror == "":
		return errors.New("ledger in etcd: want a path for the mirror")
	case c.Lease < 0 || c.Lease > MaxLease || c.Lease%time.Second != 0:
		return fmt.Errorf("ledger in etcd: lease of %s, want whole seconds, at most %s", c.Lease, MaxLease)
	case c.Log == nil:
		return errors.New("ledger in etcd: want a log")
	}
	if err := c.Bank.Validate(); err != nil {
		return fmt.Errorf("ledger in etcd: bank: %w", err)
	}
	return nil
}

// Store is a ledger that this agent leads. Its methods may be called at the same time.
type Store struct {
	cfg     Config
	cluster *cluster
	db      *ledgerdb.DB
	lead    *lead

	next     uint64            // number of the next entry
	previous [sha256.Size]byte // hash of the one before it; both belong to the mirror's transactions

	known bool // the mirror belongs to this journal

	mu     sync.Mutex // guards the three below
	why    error      // this store has stopped writing; nil: it has not
	lost   chan struct{}
	closed bool

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Open follows the journal until this agent leads, or until ctx is done. Then the
// error is an ErrLed if another leads.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Lease = cmp.Or(cfg.Lease, LeaseTime)
	db, err := ledgerdb.Open(cfg.Mirror)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, cluster: newCluster(cfg.Endpoints, cfg.TLS, idleConns), db: db, lost: make(chan struct{})}
	if err := s.becomeFollower(ctx); err != nil {
		s.cluster.close()
		return nil, errors.Join(fmt.Errorf("ledger in etcd: %w", err), db.Close())
	}
	s.becomeLeader(ctx)
	return s, nil
}

// becomeLeader lets appends through. The journal has been read to its end, and
// nobody else can write to it.
func (s *Store) becomeLeader(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.db.ShipTo(s.ship)
	s.db.SignHeads(s.cfg.Sign)
	s.wg.Go(func() {
		s.lead.renew(ctx)
		s.lose(ErrDeposed)
	})
}

// DB is the mirror, for reading. It ships its heads; all other writes must go through the Store.
func (s *Store) DB() *ledgerdb.DB { return s.db }

// Append makes records durable, in order and all or nothing (agents.Store). After ErrUncertain the
// result is unknown here; after it and after ErrDeposed the store no longer writes.
func (s *Store) Append(records []protocol.Record) error {
	if len(records) == 0 {
		return nil
	}
	if err := s.stopped(); err != nil {
		return err
	}
	err := s.db.Append(records)
	if errors.Is(err, ledgerdb.ErrUncertain) || errors.Is(err, protocol.ErrDisk) { // the mirror failed behind the journal
		s.lose(ErrUncertain)
		return errors.Join(ErrUncertain, err)
	}
	return err
}

// Each calls f with every record of a table in order of key (protocol.Tables).
func (s *Store) Each(table string, f func(key string, value []byte) error) error {
	return s.db.Each(table, f)
}

// Get is the value of a key (protocol.Tables).
func (s *Store) Get(table, key string) ([]byte, error) { return s.db.Get(table, key) }

// Leading reports whether this store has the newest state: no other agent can have written yet.
func (s *Store) Leading() bool { return s.stopped() == nil && s.lead.holds() }

// Lost is closed when this agent no longer leads.
func (s *Store) Lost() <-chan struct{} { return s.lost }

func (s *Store) stopped() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

func (s *Store) lose(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.why = why
		close(s.lost)
	}
}

// Close resigns.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	err := s.db.Close() // which may sign a last head
	s.lose(ErrDeposed)
	s.cancel()
	s.wg.Wait()
	s.lead.resign(context.Background())
	s.cluster.close()
	return err
}
