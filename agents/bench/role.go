package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/message"
)

// start runs a bank's role as 'bank serve' does, without a network, until stop is called. An
// interrupted run still receives pending answers.
func (b *BankBench) start(ctx context.Context, s agents.Store, past *ledgerdb.DB) (stop func() error) {
	b.store.Store, b.past = s, past
	cfg := bank.Config{ID: b.keys.bank.ID, Currencies: []string{benchCurrency}, Heartbeat: time.Hour}
	b.runner = agents.NewRunner(agents.Config{
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			role, out, err := bank.New(cfg, t, now)
			b.sample = &sample{Role: role}
			return b.sample, out, err
		},
		Store: &b.store, Route: b.answer, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Unavailable: func(m protocol.Message) (protocol.Message, bool) { return m, true }, // the client sees that it is no decision
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- b.runner.Run(ctx) }()
	return func() error { cancel(); return <-done }
}

// failing is a store that remembers its first error.
type failing struct {
	agents.Store
	why atomic.Value // error
}

func (f *failing) Append(records []protocol.Record) error {
	err := f.Store.Append(records)
	if err != nil {
		f.why.CompareAndSwap(nil, fmt.Errorf("bench: %w", err)) // the first one; always of one type
	}
	return err
}

func (f *failing) failure() error {
	if err, ok := f.why.Load().(error); ok {
		return err
	}
	return errors.New("bench: the ledger cannot be written")
}

// answer passes a decision to its client, and answers what the role asks its store.
func (b *BankBench) answer(m protocol.Message) {
	if q, ok := m.Body.(message.OutcomeLookup); ok {
		go func() {
			if f, err := b.past.Outcome(q.Contract); err == nil { // otherwise its client waits
				_ = b.runner.Deliver(m.Reply(protocol.LocalHistory, protocol.Inform, message.FoundOutcome{Found: f.Found, Receipt: f.Receipt, AsOf: f.AsOf}))
			}
		}()
	}
	if c, ok := b.answers.LoadAndDelete(m.Conversation); ok {
		c.(chan protocol.Message) <- m
	}
}

// fillStep is how many accounts or bundles one append contains while the ledger is filled.
const fillStep = 4000

// fill opens the accounts, gives them money and settles bundles until the ledger has its entries.
func (b *BankBench) fill(ctx context.Context) error {
	for from := 0; from < b.Accounts; from += fillStep {
		ids := b.keys.accounts[from:min(from+fillStep, b.Accounts)]
		if err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output { return openAll(now, r, ids) }); err != nil {
			return err
		}
	}
	for done := 2 * b.Accounts; done < b.Entries; done += fillStep {
		err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
			var out protocol.Output
			for range fillStep {
				o := r.Receive(now, b.settlement(b.keys.bundle(now)))
				out.Save = append(out.Save, o.Save...)
			}
			return out
		})
		if err != nil {
			return err
		}
		if done%(25*fillStep) < fillStep {
			fmt.Fprintf(b.Log, "filling the ledger: %d of %d entries\n", done, b.Entries)
		}
	}
	return nil
}

func openAll(now time.Time, r agents.Role, ids []protocol.AgentID) (out protocol.Output) {
	role := r.(*sample).Role.(*bank.Role)
	for _, id := range ids {
		_, o, err := role.OpenAccount(now, id, id.Name(), 0)
		if err != nil {
			panic(fmt.Sprintf("bench: open account: %v", err)) // a new ledger refuses no account
		}
		_, c, err := role.Credit(now, id, benchCurrency, 1_000_000*protocol.Credit, "")
		if err != nil {
			panic(fmt.Sprintf("bench: credit: %v", err)) // likewise
		}
		out = out.Join(o).Join(c)
	}
	return out
}

// settlement is a request with a verified copy. The role trusts its input, so its own speed
// can be measured apart from signatures.
func (b *BankBench) settlement(s message.Settlement) protocol.Message {
	return protocol.Message{
		Performative: protocol.Request, Sender: s.Sale.Seller.ID, Receivers: []protocol.AgentID{b.keys.bank.ID},
		Protocol: protocol.ProtocolRequest, Conversation: s.Sale.Bundle.Conversation, ReplyWith: "settle", Body: s,
	}
}

// await sends the role a request and waits for the answer.
func (b *BankBench) await(m protocol.Message, take func(protocol.Message) error) error {
	c := make(chan protocol.Message, 1)
	b.answers.Store(m.Conversation, c)
	if err := b.runner.Deliver(m); err != nil {
		return err
	}
	answer := <-c
	switch d, decided := answer.Body.(message.Decision); {
	case !decided:
		return b.store.failure()
	case d.Outcome != protocol.OutcomeSettled:
		return fmt.Errorf("bench: a bundle was not settled: %+v", d)
	}
	return take(answer)
}
