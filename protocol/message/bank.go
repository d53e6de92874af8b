package message

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// JobReport tells a bank how a unit's job ended (request, from its seller), and
// the unit's user that the bank has filed it (inform, from the bank). It carries
// the contract: a bank keeps outcomes, not bundles.
type JobReport struct {
	Bundle contract.Verified
	Signed contract.VerifiedNote[contract.JobRecord]
}

// JobVerdict countersigns or disputes a record that is filed (request, from the
// user).
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

// Vouched answers VoucherRequest (agree). A bank leaves DER empty, and the
// voucher is signed on the way out.
type Vouched struct {
	Signed contract.VerifiedNote[contract.Voucher]
}

// QuoteRequest asks a bank for a rate of exchange (request). The ID is the
// sender's; asking again with it gets the same quote.
type QuoteRequest struct {
	ID    string
	From  string // currency to give
	To    string // currency to get
	Gives protocol.Credits
}

// ExchangeRequest carries a quote out (request).
type ExchangeRequest struct {
	ID string
}

// Quoted answers both (agree); with an entry, it is done. A bank leaves DER
// empty, and the quote is signed on the way out.
type Quoted struct {
	Signed contract.VerifiedNote[contract.Quote]
}

// Readmission shows a bank that recovers a receipt of its own (request, from any
// party).
type Readmission struct {
	Bundle  contract.Verified
	Receipt contract.VerifiedReceipt
}

// Kind is the word on the wire.
func (JobReport) Kind() string       { return "job-report" }
func (JobVerdict) Kind() string      { return "job-verdict" }
func (VoucherRequest) Kind() string  { return "voucher-request" }
func (Vouched) Kind() string         { return "voucher" }
func (QuoteRequest) Kind() string    { return "quote-request" }
func (ExchangeRequest) Kind() string { return "exchange-request" }
func (Quoted) Kind() string          { return "quote" }
func (Readmission) Kind() string     { return "readmission" }
