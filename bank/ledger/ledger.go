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
func (l *Ledger) Sum() map[string]protocol.Credits { return maps.Clone(l.books.sums) }

// Sizes are the numbers of things in memory, and their bounds.
func (l *Ledger) Sizes() []protocol.Size {
	most := 0
	for _, n := range l.bundles.perUser {
		most = max(most, n)
	}
	return append(l.outcomes.voids.Sizes(MaxOutcomes+1), []protocol.Size{
		{Of: "accounts", N: len(l.books.accounts), Most: MaxAccounts},
		{Of: "open holds", N: len(l.holds.open), Most: MaxHolds},
		{Of: "undecided bundles", N: len(l.bundles.byContract), Most: MaxGathering},
		{Of: "undecided bundles of one user", N: most, Most: MaxUserGather},
		{Of: "deadlines", N: len(l.deadlines.queue), Most: 2*(MaxGathering+MaxHolds+MaxQuotes+MaxDone) + maxStale},
		{Of: "outcomes", N: l.outcomes.archive.Len(), Most: MaxOutcomes + 1},
		{Of: "answers of the store", N: len(l.outcomes.recalled) + len(l.outcomes.absent), Most: MaxRecalled},
		{Of: "groups", N: len(l.Groups.byName), Most: MaxGroups},
		{Of: "quotes", N: len(l.Exchange.quotes), Most: MaxQuotes + MaxDone},
		{Of: "orders", N: len(l.Orders.byKey), Most: MaxOrders},
	}...)
}
