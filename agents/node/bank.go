package node

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/background"
	"ramp/agents/bank"
	"ramp/agents/control"
	"ramp/agents/hub"
	"ramp/agents/words"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// Bank is a bank on this machine.
type Bank struct {
	*Node
	Books       books
	Operator    *operator
	Invitations invitations

	db   *ledgerdb.DB
	lost <-chan struct{}              // closed when another agent may speak for the bank; nil: never
	past *hub.Queue[protocol.Message] // the role's questions about the past
}

const (
	signedReceipts = 1 << 10 // remembered, since several agents get the receipt of one decision
	maxPast        = 1024    // questions about the past that wait; the role repeats further ones
	maxPastEach    = 128     // of one agent; and half as many answers that it has not read
)

// NewBank prepares the bank of a configuration. Without a network it serves its operator's
// commands only. With a network and a ledger in a cluster it waits until this agent leads.
// A store that is not empty replaces the configured one.
func NewBank(ctx context.Context, path, store string, log *slog.Logger, network bool) (*Bank, error) {
	n, err := Prepare(path, log)
	if err != nil {
		return nil, err
	}
	if err := n.Cfg.CheckBank(path); err != nil {
		return nil, err
	}
	if store != "" {
		n.Cfg.Bank.Store = store
	}
	opened, err := n.openLedger(ctx, network)
	if err != nil {
		return nil, err
	}
	n.store, n.leads = opened.store, opened.leads
	b := &Bank{Node: n, db: opened.db, lost: opened.lost, past: hub.NewQueue[protocol.Message](maxPast, maxPastEach)}
	n.history = b.ask
	cfg := bank.Config{
		ID: n.Cred.ID, Currencies: n.Cfg.Bank.Currencies, Grace: time.Duration(n.Cfg.Bank.Grace), Reports: time.Duration(n.Cfg.Bank.Reports), Heartbeat: time.Duration(n.Cfg.Heartbeat),
		Sign: SignActs(n.Cred),
	}
	signer := codec.NewSigner(n.Cred, signedReceipts)
	sign := func(m protocol.Message) (protocol.Message, error) { return signer.Sign(m, time.Now()) }
	n.prepare = func(m protocol.Message) {
		if _, ok := m.Body.(message.Decision); ok {
			_, _ = sign(m) // remembered; sending it reports an error
		}
	}
	n.start(n.indexed(false, func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		return bank.New(cfg, t, now)
	}))
	b.Books = books{n.Runner, opened.db, n.Cfg.Bank.Currencies, n.writes}
	b.Operator = &operator{books: b.Books}
	b.Invitations = invitations{n, b.Operator}
	n.sendEvents = b.Books.follow
	b.gauges()
	if network {
		var in *enroller
		if in, err = newEnroller(n); err == nil {
			err = n.connect(false, sign, in.serve)
		}
	}
	if err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	return b, nil
}

// Routes makes a mux answer the calls of banks.
func (b *Bank) Routes(mux *http.ServeMux) {
	b.Books.routes(mux)
	b.Operator.routes(mux)
	b.Invitations.routes(mux)
	control.Audit.Answer(mux, b.Audit)
	control.BankProof.Answer(mux, b.proof)
	control.Backup.Answer(mux, b.backup)
}

// Run starts the bank's goroutines.
func (b *Bank) Run(ctx context.Context) {
	b.Node.Run(ctx)
	ctx, cancel := context.WithCancel(ctx)
	stop := b.cancel
	b.cancel = func() { cancel(); stop() }
	b.wg.Go(func() { b.answerPast(ctx) })
	b.wg.Go(func() { b.sealHeads(ctx) })
}

// asker is who has asked for a question's answer, or the contract that the role itself asks about.
func asker(m protocol.Message) string {
	id, _, _ := strings.Cut(cmp.Or(m.ReplyWith, m.Conversation), " ")
	return id
}

// ask queues a question of the role about the past. Nobody has more than a small part of the queue,
// or of the memory for answers.
func (b *Bank) ask(m protocol.Message) {
	if id := asker(m); b.Mesh != nil && b.Mesh.Queued(protocol.AgentID(id)) >= maxPastEach/2 || !b.past.Put(id, m) {
		b.Log.Debug("too many queries for old records are waiting; dropped one", "of", id)
	}
}

// answerPast is the local correspondent History. The role's records are saved before its
// questions leave, so the store has every entry that a question depends on.
func (b *Bank) answerPast(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-b.past.C:
			answer, err := b.lookUp(m)
			b.past.Done(asker(m))
			if err != nil {
				b.Log.Error("cannot read old records", "err", err)
				continue
			}
			reply := m.Reply(protocol.LocalHistory, protocol.Inform, answer)
			if b.Runner.Deliver(reply) != nil {
				return
			}
		}
	}
}

func (b *Bank) lookUp(m protocol.Message) (protocol.Body, error) {
	switch q := m.Body.(type) {
	case message.OutcomeLookup:
		found, err := b.db.Outcome(q.Contract)
		return message.FoundOutcome{Found: found.Found, Receipt: found.Receipt, AsOf: found.AsOf}, err
	case message.StatementQuery:
		return b.Books.statement(q)
	case message.SoldLookup:
		page, err := b.db.Sold(q.Seller, q.Query.Ends, q.Query.After)
		return message.SoldList(page), err
	case message.ProofLookup:
		return b.prove(q)
	}
	return message.Refused(protocol.CodeUnknown, "no such question"), nil
}

// End stops a bank that a command opened.
func (b *Bank) End() {
	if err := b.Stop(); err != nil {
		b.Log.Error("stop", "err", err)
	}
}

// ServeBank runs a bank as a daemon. With a ledger in a cluster it starts again, as a
// standby, when it no longer leads.
func ServeBank(ctx context.Context, path, store string, logTo io.Writer) error {
	log := DaemonLog(logTo, path)
	hup, stop := hangups(ctx)
	defer stop()
	for {
		b, err := NewBank(ctx, path, store, log, true)
		if err != nil && ctx.Err() != nil {
			return nil // stopped while another led
		}
		if err != nil {
			return err
		}
		b.settings.hup = hup
		again, err := b.serveOnce(ctx)
		if !again {
			return err
		}
		log.Warn("no longer leading", "err", err)
		if err := os.Unsetenv(background.ReadyEnv); err != nil { // its reader knows already
			return err
		}
	}
}

// serveOnce runs the bank until the context is done or another may lead.
func (b *Bank) serveOnce(ctx context.Context) (again bool, err error) {
	b.Run(context.WithoutCancel(ctx))
	policies, err := b.Books.Policies(ctx, struct{}{})
	if t := TroubleIn(policies); err == nil && t.Words != "" { // it outlives restarts
		b.Log.Warn(t.Words, "do", t.Help)
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	b.wg.Go(func() {
		select {
		case <-b.lost:
			cancel()
		case <-serving.Done():
		}
	})
	leave := func() {
		_ = b.Runner.Do(context.WithoutCancel(ctx), func(_ time.Time, r agents.Role) protocol.Output { // it may have stopped
			return r.(*bank.Role).Leave()
		})
	}
	err = b.serve(serving, b.Routes, leave)
	again = ctx.Err() == nil && serving.Err() != nil
	cancel()
	err = errors.Join(err, b.Stop())
	return again && !errors.Is(err, protocol.ErrDisk), err
}

// Trouble is a condition that a running bank's operator should act on. The zero value means
// that there is none.
type Trouble struct{ What, Words, Help string }

// TroubleIn finds the trouble of a bank.
func TroubleIn(v control.PoliciesView) Trouble {
	switch {
	case v.Recovering:
		return Trouble{
			"recovery",
			"it was restored from a backup and is in recovery: it settles nothing",
			"'ramp bank recovery end', when sellers and users have brought back their receipts",
		}
	case !v.Latest.IsZero():
		return Trouble{
			"ledger's time",
			"its last entry is of " + words.Moment(v.Latest) + ", and this machine's clock is behind that: until it catches up, new entries get that time and incomes do not grow",
			"set this machine's clock; if it was ahead before and is right now, just wait",
		}
	}
	return Trouble{}
}

// behind returns the time of the last entry if the clock must have been set back since,
// because honest clocks differ by less than it is behind; otherwise the zero time.
func behind(now, latest time.Time) time.Time {
	if latest.Sub(now) <= protocol.ClockSkew {
		return time.Time{}
	}
	return latest
}

func (b *Bank) gauges() {
	b.monitor.figure("ramp_ledger_entries", "Entries of the ledger.", func(_ time.Time, r agents.Role) int {
		return int(r.(*bank.Role).Ledger().LastEntry())
	})
	b.monitor.figure("ramp_holds", "Amounts that are held.", func(_ time.Time, r agents.Role) int {
		return len(r.(*bank.Role).Ledger().Holds())
	})
	b.monitor.figure("ramp_accounts", "Accounts.", func(_ time.Time, r agents.Role) int {
		return len(r.(*bank.Role).Ledger().Accounts())
	})
}
