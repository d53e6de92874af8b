// Package demo brings up whole markets on this machine, each agent a process of its own, for the
// demonstration and for benchmarks.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// currency is the currency of the demonstration, and credit its user's money: enough for every
// job at its highest price.
const (
	currency = "CPU"
	credit   = 10_000_000 * protocol.Credit
)

// Market is a market on this machine: a bank, sellers and a user.
type Market struct {
	Dir   string // of all state; empty: a temporary one
	Keep  bool   // leave the agents running
	Logs  string // directory of workload logs; empty: synthetic ones
	Count int    // resources; 0: all twenty
	Bare  bool   // resources also answer bare frames
	Cores int    // of one site, which runs programs on this machine; 0: replayed machines
	// Out shows what happens.
	Out Shower

	Bank  *Process
	Sites []*Process
	User  *Process
	Begun time.Time

	ca    *identity.CA
	place func(resource int) (log string, base int64) // real log, or empty
}

// Shower shows what happens: results, lines that --quiet leaves out, and, where somebody watches,
// how far something is.
type Shower interface {
	Say(line string)
	Note(line string)
	SoFar(line string)
	Done() // what SoFar showed is over
}

// Silent shows nothing.
type Silent struct{}

func (Silent) Say(string)   {}
func (Silent) Note(string)  {}
func (Silent) SoFar(string) {}
func (Silent) Done()        {}

func (d *Market) say(format string, args ...any)      { d.Out.Say(fmt.Sprintf(format, args...)) }
func (d *Market) progress(format string, args ...any) { d.Out.Note(fmt.Sprintf(format, args...)) }
func (d *Market) soFar(format string, args ...any)    { d.Out.SoFar(fmt.Sprintf(format, args...)) }

// Open reads the logs, makes the directory and brings every agent up. After it, also if it failed,
// the market is to be closed.
func (d *Market) Open(ctx context.Context) (made bool, err error) {
	if err := d.openLogs(); err != nil {
		return false, err
	}
	d.Begun = time.Now()
	if made, err = d.makeDir(); err != nil {
		return made, err
	}
	return made, d.bringUp(ctx)
}

// Close ends the market unless it is kept. It removes a directory that was made for it, but not after
// a failure, when the logs may help.
func (d *Market) Close(ctx context.Context, made bool, err error) error {
	if d.Keep && err == nil {
		return nil
	}
	err = errors.Join(err, d.takeDown())
	if made && (err == nil || ctx.Err() != nil) {
		err = errors.Join(err, os.RemoveAll(d.Dir))
	}
	return err
}

// makeDir makes the directory of the market. made reports that it is to be removed.
func (d *Market) makeDir() (made bool, err error) {
	if d.Dir != "" {
		return false, d.ownDir()
	}
	d.Dir, err = os.MkdirTemp("", "ramp-demo-")
	return !d.Keep, err
}

// Books are the bank's balances, their sum in micro-credits, and an audit.
func (d *Market) Books(ctx context.Context) (balances []message.Balance, sum int64, audit control.AuditReport, err error) {
	if err = Ask(ctx, d.Bank, control.Balances, control.StatementCall{}, &balances); err != nil {
		return nil, 0, audit, err
	}
	for _, b := range balances {
		sum += int64(b.Balance)
	}
	err = Ask(ctx, d.Bank, control.Audit, control.AuditCall{}, &audit)
	return balances, sum, audit, err
}

// WrongBooks is the error of books that do not add up, or nil.
func WrongBooks(sum int64, audit control.AuditReport) error {
	if len(audit.Bad) == 0 && sum == 0 {
		return nil
	}
	return exit.Fail(exit.Failed, "", "the ledger does not add up: sum %d, %s", sum, audit.Problems())
}

// takeDown ends every process, the user first.
func (d *Market) takeDown() error {
	var errs []error
	for _, p := range append([]*Process{d.User}, append(d.Sites, d.Bank)...) {
		if p != nil {
			errs = append(errs, p.end())
		}
	}
	return errors.Join(errs...)
}
