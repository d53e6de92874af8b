package message

import (
	"encoding/json"
	"time"

	"ramp/protocol"
)

// BalanceQuery asks a bank for the sender's own accounts (query-ref).
type BalanceQuery struct{}

// Balance is one account as the bank has it. Available is what can be spent:
// balance, plus the overdraft limit, less what is held.
type Balance struct {
	Account   protocol.AgentID `json:"account"`
	Name      string           `json:"name"`
	Currency  string           `json:"currency"`
	Balance   protocol.Credits `json:"balance"`
	Held      protocol.Credits `json:"held"`
	Limit     protocol.Credits `json:"limit"`
	Available protocol.Credits `json:"available"`
	// Under barter, of a member: its group, and what its jobs may cost now, by its
	// way to pay. Of older banks and of all others, "" and zero.
	Group     string           `json:"group,omitempty"`
	Spendable protocol.Credits `json:"spendable,omitempty"`
	Pays      string           `json:"pays,omitempty"` // user-then-group, user or group
	// With an allowance: what comes in per day, and the part that decays per day.
	Income protocol.Credits `json:"income,omitempty"`
	Decay  protocol.Credits `json:"decay,omitempty"`
}

// MarshalJSON writes what a member of a group can spend also if that is nothing.
func (b Balance) MarshalJSON() ([]byte, error) {
	type plain Balance
	v := struct {
		plain
		Spendable *protocol.Credits `json:"spendable,omitempty"`
	}{plain: plain(b)}
	if b.Group != "" {
		v.Spendable = &b.Spendable
	}
	return json.Marshal(v)
}

// The ways to pay of a member of a group, as Balance.Pays has them.
const (
	PaysUserThenGroup = "user-then-group"
	PaysUser          = "user"
	PaysGroup         = "group"
)

// Spends is what a job may cost now.
func (b *Balance) Spends() protocol.Credits {
	if b.Group == "" {
		return b.Available
	}
	return b.Spendable
}

// Balances answers BalanceQuery (inform).
type Balances struct {
	Accounts []Balance `json:"accounts"`
}

// StatementQuery asks for entries of one account (query-ref). Account is the
// sender's own, except from LocalControl.
type StatementQuery struct {
	Account  protocol.AgentID
	From, To time.Time // zero: from the first, to the last
	After    uint64    // entry number to go on after
	Limit    int       // at most this many lines, 1..MaxStatement
	// Group asks for the entries of the sender's group in place of its own, without
	// their contracts and references; who may not spend its money is refused.
	Group bool
}

// MaxStatement bounds the lines of one Statement.
const MaxStatement = 1000

// StatementLine is one movement of an account.
type StatementLine struct {
	Entry    uint64              `json:"entry"`
	Time     time.Time           `json:"time"`
	What     string              `json:"what"` // credit, settled, refund …
	Amount   protocol.Credits    `json:"amount"`
	Held     protocol.Credits    `json:"held,omitempty"` // by how much more, or less, is held; banks of before did not say
	Currency string              `json:"currency"`
	Balance  protocol.Credits    `json:"balance"` // after it
	Contract protocol.ContractID `json:"contract,omitempty"`
	Ref      string              `json:"ref,omitempty"`
}

// Statement answers StatementQuery (inform). Account is who asked. More means that lines after the
// last one remain.
type Statement struct {
	Account protocol.AgentID `json:"account"`
	Lines   []StatementLine  `json:"lines"`
	More    bool             `json:"more"`
}

// OutcomeLookup asks the store for a decision that memory no longer has (local,
// to LocalHistory).
type OutcomeLookup struct {
	Contract protocol.ContractID
}

// FoundOutcome answers OutcomeLookup. AsOf is the last entry that the store had.
type FoundOutcome struct {
	Found   bool
	Receipt protocol.Receipt
	AsOf    uint64
}

// Kind names the body; local bodies are never on the wire.
func (OutcomeLookup) Kind() string { return "local-outcome-lookup" }
func (FoundOutcome) Kind() string  { return "local-found-outcome" }

// Kind is the word on the wire.
func (BalanceQuery) Kind() string   { return "balance-query" }
func (Balances) Kind() string       { return "balances" }
func (StatementQuery) Kind() string { return "statement-query" }
func (Statement) Kind() string      { return "statement" }
