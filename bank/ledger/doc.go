// Package ledger decides what a bank's accounts hold and whether a bundle of reservations is paid.
//
// A request to a Ledger carries the time; the answer is a result and the records to
// save, which must be durable before anything of it leaves. When saving fails, the
// Ledger must be dropped and loaded again.
//
// There is one primitive, and it happens exactly once:
//
//	hold --post, fully or partly--> posted
//	hold --void--> released
//	hold --its time passes--> expired
//
// One record decides a bundle, and is the commit point for all of its parties:
//
//	unknown ----a copy--------------> gathering
//	gathering --the last copy-------> settled, or void(account, funds, overflow)
//	gathering --settle-by passes----> void(settle-by)
//	gathering --a party asks--------> void(abandoned)
//	unknown --settle-by passes------> void(settle-by), perhaps without a record: package voids
//
// Money is double entry: every entry sums to zero in each currency, and credit comes from an issuer
// account that goes below zero. Memory has what is live: accounts, open holds, undecided bundles
// and recent outcomes. Entries and old outcomes are only in the store; where memory cannot tell,
// the answer is ErrAskStore. Absence from memory never decides.
package ledger

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"ramp/protocol"
)

// Bounds of a ledger. Requests beyond them are refused with CodeLimit, except where noted.
const (
	MaxAccounts     = 1 << 22 // accounts of a bank
	MaxCurrencies   = 64      // currencies of a bank
	MaxHolds        = 1 << 20 // open holds
	MaxGathering    = 1 << 16 // undecided bundles
	MaxUserGather   = 1 << 10 // undecided bundles of one user
	MaxOutcomes     = 1 << 19 // outcomes in memory; beyond, the oldest leave it
	MaxRecalled     = 1 << 12 // answers of the store kept in memory; all leave at the bound
	MaxExpire       = 1 << 10 // expiries of one call; the next one is then due at once
	MaxName         = 64      // bytes of an account's name
	MaxRef          = 200     // bytes of a reference
	MaxCurrency     = 16      // bytes of a currency
	MaxGroups       = 1 << 12 // groups of a bank
	MaxMembers      = 256     // users of a group
	MaxClusters     = 64      // clusters of a group
	MaxQuotes       = 1 << 12 // open quotes
	MaxUserQuotes   = 16      // open quotes of one user
	MaxDone         = 1 << 16 // quotes that were carried out and are remembered
	MaxUserDone     = 1 << 12 // those of one user
	MaxOrders       = 1 << 16 // orders of the operator that are remembered
	MaxOrderKey     = 64      // bytes of an order's key
	MaxUserVouchers = 16      // open vouchers of one user
	maxParts        = 2       // accounts that share one hold: a user's and its group's
	tailLen         = 16      // entries of an account kept in its own row before they move to the index
	forgetPerChange = 4       // outcomes that leave memory for one that enters
)

// LeastReportWithin is the shortest time that a ledger may wait for a report: sellers
// report within it when all is well.
const LeastReportWithin = time.Second

// DefaultGrace is how long expiry waits after a restart: two of a seller's
// longest pauses between requests, so that each has been heard again.
const DefaultGrace = 2 * protocol.RetryMost

// Issuer is the account that every credit comes from. Its balance is the money
// in circulation, below zero.
const Issuer protocol.AgentID = ".issuer"

// ErrAskStore says that memory cannot tell whether the contract was decided:
// look its outcome up in the store, hand it to Recall and ask again.
var ErrAskStore = errors.New("outcome may be older than memory: ask the store")

var errUnknown = errors.New("unknown")

// Refusal is the reason why a request changed nothing.
type Refusal struct {
	Code protocol.Code
	Note string
}

// Error is the code with the facts.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Note }

// codeOf is the code of a refusal; any other error is malformed.
func codeOf(err error) protocol.Code {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return protocol.CodeMalformed
}

func refuse(code protocol.Code, format string, args ...any) error {
	return &Refusal{Code: code, Note: fmt.Sprintf(format, args...)}
}

// Config is whose ledger it is, and how it works.
type Config struct {
	Bank       protocol.AgentID // bundles must name it
	Currencies []string         // those that it keeps accounts in
	Grace      time.Duration    // pause of expiry after a restart; zero: DefaultGrace

	// ReportWithin is how long after its slot's end a unit that is paid after the
	// fact waits for its seller's report; zero: protocol.ReportWithin, which is the
	// most. A change counts for later settlements.
	ReportWithin time.Duration

	// Sign signs an operator's act (Entry.Octets), the same octets always in the
	// same way; nil: acts are not signed.
	Sign func(octets []byte) []byte
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if err := c.Bank.Validate(); err != nil {
		return fmt.Errorf("ledger config: bank: %w", err)
	}
	if n := len(c.Currencies); n < 1 || n > MaxCurrencies {
		return fmt.Errorf("ledger config: %d currencies, want 1..%d", n, MaxCurrencies)
	}
	for _, cur := range c.Currencies {
		if !validWord(cur, MaxCurrency) {
			return fmt.Errorf("ledger config: currency %q: want 1..%d letters, digits, '-' or '_'", cur, MaxCurrency)
		}
	}
	if c.Grace < 0 {
		return fmt.Errorf("ledger config: grace %s: want zero or more", c.Grace)
	}
	if c.ReportWithin != 0 && (c.ReportWithin < LeastReportWithin || c.ReportWithin > protocol.ReportWithin) {
		return fmt.Errorf("ledger config: reports within %s: want %s..%s", c.ReportWithin, LeastReportWithin, protocol.ReportWithin)
	}
	return nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func validWord(s string, most int) bool { return len(s) <= most && word.MatchString(s) }
