package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

const (
	ledgerName      = "ledger.db"
	signedReceipts  = 1 << 10 // that are remembered, for all who are told of one decision
	currencyPattern = `^[A-Z]{3,8}$`
)

// bankNode is a bank on this machine.
type bankNode struct {
	*node
	db   *ledgerdb.DB
	lost <-chan struct{}       // closed when another agent may speak for the bank; nil: never
	past chan protocol.Message // questions about the past

	orders sync.Mutex // held while an order is looked for, and carried out if it is not there
}

// maxPast is how many questions about the past wait for the store; further ones
// are dropped and asked again.
const maxPast = 1024

// newBankNode prepares the bank of a directory. Without a network it serves its
// operator's commands only. A ledger in a cluster is waited for: with a network
// until this agent leads. store, if not empty, is in place of the configured one.
func newBankNode(ctx context.Context, path, store string, log *slog.Logger, network bool) (*bankNode, error) {
	n, err := prepare(path, log)
	if err != nil {
		return nil, err
	}
	if err := n.cfg.checkBank(path); err != nil {
		return nil, err
	}
	if store != "" {
		n.cfg.Bank.Store = store
	}
	books, err := n.openBooks(ctx, network)
	if err != nil {
		return nil, err
	}
	n.store, n.leads = books.store, books.leads
	b := &bankNode{node: n, db: books.db, lost: books.lost, past: make(chan protocol.Message, maxPast)}
	n.history = b.ask
	cfg := bank.Config{
		ID: n.cred.ID, Currencies: n.cfg.Bank.Currencies, Grace: time.Duration(n.cfg.Bank.Grace), Reports: time.Duration(n.cfg.Bank.Reports), Heartbeat: time.Duration(n.cfg.Heartbeat),
		Sign: signActs(n.cred),
	}
	signer := codec.NewSigner(n.cred, signedReceipts)
	sign := func(m protocol.Message) (protocol.Message, error) { return signer.Sign(m, time.Now()) }
	n.prepare = func(m protocol.Message) {
		if _, ok := m.Body.(message.Decision); ok {
			_, _ = sign(m) // remembered; what is wrong is told when it is sent
		}
	}
	n.start(func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return bank.New(cfg, t, now)
	})
	b.gauges()
	if network {
		var in *enroller
		if in, err = b.enroller(); err == nil {
			err = n.connect(false, sign, in.serve)
		}
	}
	if err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	return b, nil
}

// checkBank holds that a configuration is a bank's.
func (c *config) checkBank(path string) error {
	if c.Bank == nil || len(c.Bank.Currencies) == 0 {
		return fail(exitUsage, c.kindHint("bank", "write 'bank: {currencies: [CPU]}'"), "configuration %s is not a bank's", path)
	}
	for _, cur := range c.Bank.Currencies {
		if !regexp.MustCompile(currencyPattern).MatchString(cur) {
			return fail(exitUsage, "", "configuration %s: bank.currencies: %q: want 3..8 capital letters", path, cur)
		}
	}
	if d := time.Duration(c.Bank.Reports); d != 0 && (d < ledger.LeastReportWithin || d > protocol.ReportWithin) {
		return fail(exitUsage, "", "configuration %s: bank.report_within: %s: want %s..%s", path, d, ledger.LeastReportWithin, protocol.ReportWithin)
	}
	return nil
}

// run starts the bank's goroutines.
func (b *bankNode) run(ctx context.Context) {
	b.node.run(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stop := b.cancel
	b.cancel = func() { cancel(); stop() }
	b.wg.Add(1)
	go func() { defer b.wg.Done(); b.answerPast(ctx) }()
	b.wg.Add(1)
	go func() { defer b.wg.Done(); b.sealHeads(ctx) }()
}

// ask queues a question about the past.
func (b *bankNode) ask(m protocol.Message) {
	select {
	case b.past <- m:
	default:
		b.log.Warn("too many questions about the past; one was dropped")
	}
}

// answerPast is the local correspondent History: it reads the store at or after
// the entry that the question rests on, since what was saved before it is there.
func (b *bankNode) answerPast(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-b.past:
			answer, err := b.lookUp(m)
			if err != nil {
				b.log.Error("cannot read the past", "err", err)
				continue
			}
			reply := m.Reply(protocol.LocalHistory, protocol.Inform, answer)
			if b.runner.Deliver(reply) != nil {
				return
			}
		}
	}
}

func (b *bankNode) lookUp(m protocol.Message) (protocol.Body, error) {
	switch q := m.Body.(type) {
	case message.OutcomeLookup:
		found, err := b.db.Outcome(q.Contract)
		return message.FoundOutcome{Found: found.Found, Receipt: found.Receipt, AsOf: found.AsOf}, err
	case message.StatementQuery:
		return b.statement(q)
	case message.SoldLookup:
		page, err := b.db.Sold(q.Seller, q.Query.Ends, q.Query.After)
		return message.SoldList(page), err
	case message.ProofLookup:
		return b.prove(q)
	}
	return message.Refused(protocol.CodeUnknown, "no such question"), nil
}

// statement reads the lines of an account in every currency of the bank.
func (b *bankNode) statement(q message.StatementQuery) (message.Statement, error) {
	s := message.Statement{Account: q.Account, Lines: []message.StatementLine{}}
	limit := min(max(q.Limit, 1), message.MaxStatement)
	entries := map[uint64]int{} // lines of each
	for _, currency := range b.cfg.Bank.Currencies {
		part, err := b.db.Statement(ledgerdb.Query{Account: q.Account, Currency: currency, From: q.From, To: q.To, After: q.After, Limit: limit})
		if err != nil {
			return s, err
		}
		s.More = s.More || part.More
		for _, e := range part.Entries {
			for _, leg := range e.Legs {
				if leg.Account == q.Account && leg.Currency == currency {
					entries[e.Number]++
					s.Lines = append(s.Lines, lineOf(e, leg, q.Group))
				}
			}
		}
	}
	cutStatement(&s, entries, limit)
	return s, nil
}

// lineOf is a line of a statement; to the members of a group it names no contracts
// of others.
func lineOf(e ledger.Entry, leg ledger.Leg, group bool) message.StatementLine {
	l := message.StatementLine{
		Entry: e.Number, Time: e.Time, What: e.Kind.String(), Amount: leg.Amount, Held: leg.Held, Currency: leg.Currency, Balance: leg.After,
	}
	if !group {
		l.Contract, l.Ref = e.Contract, e.Ref
	}
	return l
}

// cutStatement puts the lines of several currencies in order of entry and keeps
// those of the first entries: the next page begins behind a whole entry.
func cutStatement(s *message.Statement, entries map[uint64]int, limit int) {
	sort.SliceStable(s.Lines, func(i, j int) bool { return s.Lines[i].Entry < s.Lines[j].Entry })
	if len(entries) <= limit {
		return
	}
	keep := 0
	for range limit {
		keep += entries[s.Lines[keep].Entry]
	}
	s.Lines, s.More = s.Lines[:keep], true
}

// openBank reaches the bank of a directory: its daemon, or one in this process
// that only its operator can reach.
func openBank(c *cobra.Command, dir string) (*caller, func(), error) {
	d, b, err := reachBank(c, dir)
	if err != nil || d != nil {
		return d, func() {}, err
	}
	b.run(context.WithoutCancel(c.Context()))
	mux := http.NewServeMux()
	b.routes(mux)
	return localCaller(mux), b.end, nil
}

// end stops a bank that a command has opened.
func (b *bankNode) end() {
	if err := b.stop(); err != nil {
		b.log.Error("stop", "err", err)
	}
}

// reachBank is the daemon of a bank, or the bank in this process, which has written
// nothing yet.
func reachBank(c *cobra.Command, dir string) (*caller, *bankNode, error) {
	if err := meant(filepath.Join(dir, configName), "bank"); err != nil {
		return nil, nil, err
	}
	d, b, err := daemonOrBooks(c, dir)
	for late := time.Now().Add(busyTime); err != nil && aboutToListen(dir, err) && time.Now().Before(late); {
		time.Sleep(busyPause)
		d, b, err = daemonOrBooks(c, dir)
	}
	return d, b, err
}

// aboutToListen reports whether a daemon has the ledger and no control socket yet: it
// has just been started, or begins to lead.
func aboutToListen(dir string, err error) bool {
	var l *boltfile.InUseError
	return errors.As(err, &l) && !commandHas(err) && !daemonListens(dir)
}

// daemonOrBooks is a bank's daemon, or the bank in this process.
func daemonOrBooks(c *cobra.Command, dir string) (*caller, *bankNode, error) {
	if d, ok := awaitDaemon(c, dir); ok {
		return d, nil, nil
	}
	b, err := newBankNode(c.Context(), filepath.Join(dir, configName), "", commandLog(stderr(c)), false)
	return nil, b, err
}

// serveBank runs a bank as a daemon: again and again if its ledger is in a cluster.
func serveBank(ctx context.Context, path, store string, logTo io.Writer) error {
	log := daemonLog(logTo, path)
	hup, stop := hangups()
	defer stop()
	for {
		b, err := newBankNode(ctx, path, store, log, true)
		if err != nil && ctx.Err() != nil {
			return nil // told to stop while following
		}
		if err != nil {
			return err
		}
		b.hup = hup
		again, err := b.serveOnce(ctx)
		if !again {
			return err
		}
		log.Warn("not leading any more", "err", err)
		if err := os.Unsetenv(readyEnv); err != nil { // whoever waited has been told
			return err
		}
	}
}

// serveOnce runs the bank until the context is done or another may lead.
func (b *bankNode) serveOnce(ctx context.Context) (again bool, err error) {
	b.run(context.WithoutCancel(ctx))
	b.warnTrouble(ctx)
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	b.wg.Add(1)
	go func() {
		defer b.wg.Done()
		select {
		case <-b.lost:
			cancel()
		case <-serving.Done():
		}
	}()
	leave := func() {
		_ = b.runner.Do(context.WithoutCancel(ctx), func(_ time.Time, r agents.Role) protocol.Output { // it may have stopped
			return r.(*bank.Role).Leave()
		})
	}
	err = b.serve(serving, b.routes, leave)
	again = ctx.Err() == nil && serving.Err() != nil
	cancel()
	return again, errors.Join(err, b.stop())
}
