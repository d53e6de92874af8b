package ledger

import "ramp/protocol"

// Sizes are what the ledger keeps in memory, and the bounds of it.
func (l *Ledger) Sizes() []protocol.Size {
	most := 0
	for _, n := range l.gathers {
		most = max(most, n)
	}
	return []protocol.Size{
		{Of: "accounts", N: len(l.accounts), Most: MaxAccounts},
		{Of: "open holds", N: len(l.holds), Most: MaxHolds},
		{Of: "undecided bundles", N: len(l.gathering), Most: MaxGathering},
		{Of: "undecided bundles of one user", N: most, Most: MaxUserGather},
		{Of: "deadlines", N: len(l.deadlines), Most: 2*(MaxGathering+MaxHolds+MaxQuotes) + maxStale},
		{Of: "outcomes", N: l.outcomes.len(), Most: MaxOutcomes + 1},
		{Of: "answers of the store", N: len(l.recalled) + len(l.absent), Most: MaxRecalled},
		{Of: "groups", N: len(l.groups), Most: MaxGroups},
		{Of: "quotes", N: len(l.quotes), Most: MaxQuotes},
	}
}
