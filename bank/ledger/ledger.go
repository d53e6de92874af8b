package ledger

import (
	"maps"

	"ramp/protocol"
)

// Ledger is the live part of a bank's books. One goroutine owns it. Each part owns
// its fields, and calls only the parts above it; the methods of Ledger are the
// requests that concern more than one of them.
type Ledger struct {
	books     *books
	deadlines *deadlines
	recovery  *recovery
	holds     *holds
	outcomes  *outcomes
	sales     *sales
	deals     *deals
	bundles   *bundles

	Groups      *Groups
	Exchange    *Exchange
	Invitations *Invitations
	Orders      *Orders
}

// Bank is whose ledger it is.
func (l *Ledger) Bank() protocol.AgentID { return l.books.cfg.Bank }

// LastEntry is the number of the last entry; zero: none yet.
func (l *Ledger) LastEntry() uint64 { return l.books.state.Entry }

// Sum is the sum of all balances per currency, issuer included: zero, if the
// ledger is right. It is kept as legs are carried out, each by itself.
func (l *Ledger) Sum() map[string]protocol.Credits {
	return maps.Clone(l.books.sums)
}
