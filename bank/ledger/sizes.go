package ledger

import "ramp/protocol"

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
