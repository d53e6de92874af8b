package message

import (
	"encoding/json"
	"time"

	"ramp/protocol"
)

// BalanceQuery asks a bank for the sender's own accounts (query-ref).
type BalanceQuery struct{}

// Balance is one account at a bank. Available is the amount that can be spent:
// balance, plus the overdraft limit, less holds.
type Balance struct {
	Account   protocol.AgentID `json:"account"`
	Name      string           `json:"name"`
	Currency  string           `json:"currency"`
	Balance   protocol.Credits `json:"balance"`
	Held      protocol.Credits `json:"held"`
	Limit     protocol.Credits `json:"limit"`
	Available protocol.Credits `json:"available"`
	// For a member of a group under barter: the group, and the most that its jobs may
	// cost now, given how it pays. Otherwise, and from older banks, "" and zero.
	Group     string           `json:"group,omitempty"`
	Spendable protocol.Credits `json:"spendable,omitempty"`
	Pays      string           `json:"pays,omitempty"` // user-then-group, user or group
	// With an allowance: the income per day, and the part that decays per day.
	Income protocol.Credits `json:"income,omitempty"`
	Decay  protocol.Credits `json:"decay,omitempty"`
}

// MarshalJSON writes Spendable for every member of a group, even if it is zero.
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

// The values of Balance.Pays: how a member of a group pays.
const (
	PaysUserThenGroup = "user-then-group"
	PaysUser          = "user"
	PaysGroup         = "group"
)

// Spends is the most that a job may cost now.
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
	After    uint64    // only entries with a higher number
	Before   uint64    // only the last entries with a lower number; 0: the first ones behind After
	Limit    int       // at most this many lines, 1..MaxStatement
	// Group asks for the entries of the sender's group instead, without contracts and
	// references. The bank refuses a sender that may not spend the group's money.
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
	Held     protocol.Credits    `json:"held,omitempty"` // change of the hold; zero from older banks
	Currency string              `json:"currency"`
	Balance  protocol.Credits    `json:"balance"` // after the movement
	Contract protocol.ContractID `json:"contract,omitempty"`
	Ref      string              `json:"ref,omitempty"`
	Other    protocol.AgentID    `json:"other,omitempty"` // the other account of a transfer; empty from older banks
}

// Statement answers StatementQuery (inform). Account is the asking account. More
// means that further lines follow, or precede these if the query had Before.
type Statement struct {
	Account protocol.AgentID `json:"account"`
	Lines   []StatementLine  `json:"lines"`
	More    bool             `json:"more"`
}

// OutcomeLookup asks the store for a decision that is no longer in memory (local, to LocalHistory).
type OutcomeLookup struct {
	Contract protocol.ContractID
}

// FoundOutcome answers OutcomeLookup. AsOf is the last entry in the store.
type FoundOutcome struct {
	Found   bool
	Receipt protocol.Receipt
	AsOf    uint64
}

// Kind names the body; local bodies are never on the wire.
func (OutcomeLookup) Kind() string { return "local-outcome-lookup" }
func (FoundOutcome) Kind() string  { return "local-found-outcome" }

// Kind is the name on the wire.
func (BalanceQuery) Kind() string   { return "balance-query" }
func (Balances) Kind() string       { return "balances" }
func (StatementQuery) Kind() string { return "statement-query" }
func (Statement) Kind() string      { return "statement" }
