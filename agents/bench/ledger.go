package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/bank"
	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/message"
)

// LedgerFigures are the results of 'bench ledger'; the names are fixed.
type LedgerFigures struct {
	Accounts     int     `json:"accounts"`
	Entries      uint64  `json:"entries"`
	FileMB       float64 `json:"file_mb"`
	StartSeconds float64 `json:"start_seconds"`    // from a closed file to a bank that answers
	ResidentMB   float64 `json:"resident_mb"`      // of the process then
	Balance      float64 `json:"balance_ms"`       // the slowest of many
	Statement    float64 `json:"statement_ms"`     // of accounts at random, 95th of 100
	Busiest      float64 `json:"busiest_page_ms"`  // a full page of the busiest account, from random times on, 95th of 100
	Sold         float64 `json:"sold_page_ms"`     // a page of the busiest seller's sales, median
	AuditPerSec  float64 `json:"audit_per_second"` // entries: tables, sums and hashes
	AuditPeakMB  float64 `json:"audit_peak_mb"`    // most memory of the process, files it maps included
}

// LedgerBench is one run.
type LedgerBench struct {
	Log      io.Writer // reports progress
	Dir      string
	Make     bool
	Accounts int
	Entries  int
}

func (b *LedgerBench) path() string { return filepath.Join(b.Dir, config.LedgerName) }

// ledgerConfig configures a bank whose key does not exist.
func (b *LedgerBench) bank() (bank.Config, error) {
	id, err := protocol.NewAgentID("bank", benchFingerprint(ledger.MaxAccounts))
	return bank.Config{ID: id, Currencies: []string{benchCurrency}, Heartbeat: time.Hour}, err
}

func benchAccount(i int) (protocol.AgentID, error) {
	return protocol.NewAgentID(fmt.Sprintf("agent%d", i), benchFingerprint(i))
}

// makeStep is how many accounts or bundles one append contains.
const makeStep = 1 << 14

// Create opens the accounts, gives them money and settles bundles.
func (b *LedgerBench) Create(ctx context.Context) (err error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return exit.Fail(exit.Usage, "", "--dir: %w", err)
	}
	if _, err := os.Stat(b.path()); !errors.Is(err, os.ErrNotExist) {
		return exit.Fail(exit.Usage, "give --dir another directory", "%s exists already", b.path())
	}
	db, err := ledgerdb.Open(b.path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	cfg, err := b.bank()
	if err != nil {
		return err
	}
	m := ledgerMaker{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	if m.ledger, err = ledger.Load(ledger.Config{Bank: cfg.ID, Currencies: cfg.Currencies}, m.now, db); err != nil {
		return err
	}
	for n := range b.Entries - b.Accounts {
		if n < b.Accounts {
			err = m.open(n)
		} else {
			err = m.settle(n)
		}
		if err == nil && (n%makeStep == makeStep-1 || n == b.Entries-b.Accounts-1) {
			err = errors.Join(m.flush(db), ctx.Err())
		}
		if err != nil {
			return err
		}
		if n%(1<<20) == 0 {
			fmt.Fprintf(b.Log, "making the ledger: %d of %d entries\n", m.ledger.LastEntry(), b.Entries)
		}
	}
	return nil
}

// ledgerMaker decides and collects.
type ledgerMaker struct {
	ledger   *ledger.Ledger
	now      time.Time
	accounts []protocol.AgentID
	records  []protocol.Record
}

func (m *ledgerMaker) flush(db *ledgerdb.DB) error {
	err := db.Append(m.records)
	m.records = m.records[:0]
	return err
}

func (m *ledgerMaker) open(i int) error {
	id, err := benchAccount(i)
	if err != nil {
		return err
	}
	m.accounts = append(m.accounts, id)
	_, open, err1 := m.ledger.Open(m.now, id, id.Name())
	_, credit, err2 := m.ledger.Credit(m.now, id, benchCurrency, 1_000_000*protocol.Credit, "")
	m.records = append(append(m.records, open...), credit...)
	return errors.Join(err1, err2)
}

// settle lets accounts buy in turns, each from the next one, and every tenth time from the first.
func (m *ledgerMaker) settle(n int) error {
	m.now = m.now.Add(time.Millisecond)
	user, seller := m.accounts[n%len(m.accounts)], m.accounts[(n+1)%len(m.accounts)]
	if n%10 == 0 {
		seller = m.accounts[0]
	}
	start := m.now.Truncate(time.Second).Add(time.Hour)
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: fmt.Sprintf("bench-%d", n), User: user, Bank: m.ledger.Bank(),
		Currency: benchCurrency, Mode: protocol.ModeOnReservation, Total: protocol.Credit, SettleBy: m.now.Add(30 * time.Minute),
		Units: []protocol.BundleUnit{{
			Seller: seller, Reservation: fmt.Sprintf("r%d", n), Price: protocol.Credit, Cost: protocol.Credit,
			Slot: protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 1},
		}},
	}
	r, records, err := m.ledger.Copy(m.now, protocol.ContractID(fmt.Sprintf("%064x", n)), b, seller)
	if err == nil && r.Outcome != protocol.OutcomeSettled {
		err = fmt.Errorf("bench: bundle %d: %s %s", n, r.Outcome, r.Reason)
	}
	m.records = append(m.records, records...)
	return err
}

// Measure opens the ledger and times queries.
func (b *LedgerBench) Measure() (f *LedgerFigures, err error) {
	info, err := os.Stat(b.path())
	if err != nil {
		return nil, exit.Fail(exit.Usage, "make it with --make", "--dir: %w", err)
	}
	cfg, err := b.bank()
	if err != nil {
		return nil, err
	}
	f = &LedgerFigures{FileMB: float64(info.Size()) / 1e6}
	begun := time.Now()
	db, err := ledgerdb.Open(b.path())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	role, _, err := bank.New(cfg, db, begun)
	if err != nil {
		return nil, err
	}
	f.StartSeconds = time.Since(begun).Seconds()
	f.ResidentMB = procMB("VmRSS:")
	f.Accounts, f.Entries = role.Ledger().Sizes()[0].N, role.Ledger().LastEntry()
	if err := f.ask(role, db); err != nil {
		return nil, err
	}
	if err := f.audit(db); err != nil {
		return nil, err
	}
	return f, nil
}

// asked is how often each query runs.
const asked = 100

// ask times the usual queries.
func (f *LedgerFigures) ask(role *bank.Role, db *ledgerdb.DB) error {
	var balances, statements, busiest, sold []time.Duration
	rng := rand.New(rand.NewPCG(1, 1))
	first, err1 := benchAccount(0)
	last, err2 := db.Entries(f.Entries, 1)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for range asked {
		id, err := benchAccount(rng.IntN(f.Accounts - 1))
		if err != nil {
			return err
		}
		balances = append(balances, timeOf(&err, func() error { return askBalance(role, id) }))
		q := ledgerdb.Query{Account: id, Currency: benchCurrency, Limit: ledgerdb.MaxPage}
		statements = append(statements, timeOf(&err, func() error { return askStatement(db, q, 2) }))
		q.Account, q.From = first, last[0].Time.Add(-time.Duration(rng.Int64N(int64(time.Hour))))
		busiest = append(busiest, timeOf(&err, func() error { return askStatement(db, q, 1) }))
		sold = append(sold, timeOf(&err, func() error {
			page, err := db.Sold(first, time.Time{}, "")
			if err == nil && len(page.Sold) == 0 {
				err = errors.New("bench: nothing was sold")
			}
			return err
		}))
		if err != nil {
			return err
		}
	}
	f.Balance, f.Statement = Quantile(balances, 1), Quantile(statements, 0.95)
	f.Busiest, f.Sold = Quantile(busiest, 0.95), Quantile(sold, 0.5)
	return nil
}

// timeOf is how long f takes. It does nothing after an error.
func timeOf(failed *error, f func() error) time.Duration {
	begun := time.Now()
	if *failed == nil {
		*failed = f()
	}
	return time.Since(begun)
}

func askBalance(role *bank.Role, id protocol.AgentID) error {
	out := role.Receive(time.Now(), protocol.Message{
		Performative: protocol.QueryRef, Sender: id, Protocol: protocol.ProtocolRequest, Conversation: "balance", Body: message.BalanceQuery{},
	})
	if _, ok := out.Send[0].Body.(message.Balances); !ok {
		return fmt.Errorf("bench: %s has no balance: %+v", id, out.Send[0].Body)
	}
	return nil
}

func askStatement(db *ledgerdb.DB, q ledgerdb.Query, least int) error {
	s, err := db.Statement(q)
	if err == nil && len(s.Entries) < least {
		err = fmt.Errorf("bench: statement of %s has %d entries", q.Account, len(s.Entries))
	}
	return err
}

func (f *LedgerFigures) audit(db *ledgerdb.DB) error {
	begun := time.Now()
	r, log, err := db.AuditAll(true, nil, nil)
	if err != nil {
		return err
	}
	if bad := append(r.Bad, log.Bad...); len(bad) > 0 {
		return fmt.Errorf("bench: the audit found faults: %s", strings.Join(bad, "; "))
	}
	f.AuditPerSec = float64(r.Entries) / time.Since(begun).Seconds()
	f.AuditPeakMB = procMB("VmHWM:")
	return nil
}

// procMB is a value of /proc/self/status in 10^6 bytes; zero on systems without it.
func procMB(name string) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kb float64
		if rest, ok := strings.CutPrefix(line, name); ok {
			if _, err := fmt.Sscan(rest, &kb); err == nil {
				return kb * 1024 / 1e6
			}
		}
	}
	return 0
}
