package message

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// JobReport reports to a bank how a unit's job ended (request, from its seller). The
// bank files it and forwards it to the unit's user (inform). It carries the contract,
// since banks keep outcomes, not bundles.
type JobReport struct {
	Bundle contract.Verified
	Signed contract.VerifiedNote[contract.JobRecord]
}

// JobVerdict countersigns or disputes a filed record (request, from the user).
type JobVerdict struct {
	Signed contract.VerifiedNote[contract.Verdict]
}

// VoucherRequest asks a bank to hold an amount for the bundle of a conversation
// (request, from the user).
type VoucherRequest struct {
	Conversation string
	Currency     string
	Amount       protocol.Credits
	Until        time.Time
}

// Vouched answers VoucherRequest (agree). A bank leaves DER empty; codec.Sign signs the voucher.
type Vouched struct {
	Signed contract.VerifiedNote[contract.Voucher]
}

// QuoteRequest asks a bank for a rate of exchange (request). The ID is the
// sender's; asked again with it, the bank answers the same quote, and what it has
// carried out under that ID, for as long as it remembers (protocol.OrderMemory).
type QuoteRequest struct {
	ID    string
	From  string // currency to give
	To    string // currency to get
	Gives protocol.Credits
}

// ExchangeRequest carries a quote out, once (request), unless it gives less than
// Least. Banks of earlier versions do not look at Least.
type ExchangeRequest struct {
	ID    string
	Least protocol.Credits // of the currency to get; zero: any amount
}

// Quoted answers both (agree). An entry means that the exchange is done. A bank
// leaves DER empty; codec.Sign signs the quote.
type Quoted struct {
	Signed contract.VerifiedNote[contract.Quote]
}

// Readmission gives a recovering bank one of its own receipts (request, from any party).
type Readmission struct {
	Bundle  contract.Verified // empty: the contract is void, and its seller has only the receipt
	Receipt contract.VerifiedReceipt
}

// Kind is the name on the wire.
func (JobReport) Kind() string       { return "job-report" }
func (JobVerdict) Kind() string      { return "job-verdict" }
func (VoucherRequest) Kind() string  { return "voucher-request" }
func (Vouched) Kind() string         { return "voucher" }
func (QuoteRequest) Kind() string    { return "quote-request" }
func (ExchangeRequest) Kind() string { return "exchange-request" }
func (Quoted) Kind() string          { return "quote" }
func (Readmission) Kind() string     { return "readmission" }
