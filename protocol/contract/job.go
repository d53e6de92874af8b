package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"ramp/protocol"
)

// JobRecord is a seller's report about a unit after its job has stopped, in the modes
// that pay after the fact: whether it succeeded, and its usage.
type JobRecord struct {
	Version  int                 `json:"job"` // NoteVersion; the name says what note this is
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	Seller   protocol.AgentID    `json:"seller"` // who signs
	Success  bool                `json:"success"`
	Usage    protocol.Usage      `json:"usage"`
	Due      protocol.Credits    `json:"due"`   // by the terms of the contract, which the bank checks; less if the seller failed
	Ended    time.Time           `json:"ended"` // in UTC
	Measured protocol.Measured   `json:"measured,omitempty"`
}

// Verdict is a user's answer to a usage record: it agrees, which countersigns it, or disputes it.
type Verdict struct {
	Version  int                 `json:"verdict"` // NoteVersion; the name says what note this is
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	User     protocol.AgentID    `json:"user"`   // who signs
	Record   string              `json:"record"` // RecordHash of the JobRecord
	Agree    bool                `json:"agree"`
	At       time.Time           `json:"at"`            // in UTC
	Why      string              `json:"why,omitempty"` // of a dispute, for the operator: at most MaxWhy bytes
}

// MaxWhy bounds the reason of a dispute, in bytes: banks keep it beside the record's hash.
const MaxWhy = 128

// Voucher is a bank's statement that it holds an amount for the bundle of one conversation.
type Voucher struct {
	Version      int              `json:"voucher"` // NoteVersion; the name says what note this is
	Bank         protocol.AgentID `json:"bank"`    // who signs
	User         protocol.AgentID `json:"user"`
	Conversation string           `json:"conversation"`
	Currency     string           `json:"currency"`
	Amount       protocol.Credits `json:"amount"`
	Until        time.Time        `json:"until"` // in UTC
	Hold         uint64           `json:"hold"`  // number of the hold
}

// Quote is a bank's promise to exchange an amount once, until a time, or, with an Entry,
// its confirmation of the exchange.
type Quote struct {
	Version int              `json:"quote"` // NoteVersion; the name says what note this is
	Bank    protocol.AgentID `json:"bank"`  // who signs
	ID      string           `json:"id"`
	User    protocol.AgentID `json:"user"`
	From    string           `json:"from"`
	To      string           `json:"to"`
	Gives   protocol.Credits `json:"gives"`
	Gets    protocol.Credits `json:"gets"`
	Until   time.Time        `json:"until"` // in UTC
	Entry   uint64           `json:"entry,omitempty"`
}

// RecordHash names a job record: the hex SHA-256 of its canonical octets.
func RecordHash(r JobRecord) (string, error) {
	octets, err := encode(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(octets)
	return hex.EncodeToString(sum[:]), nil
}

func (n JobRecord) by() protocol.AgentID { return n.Seller }
func (n Verdict) by() protocol.AgentID   { return n.User }
func (n Voucher) by() protocol.AgentID   { return n.Bank }
func (n Quote) by() protocol.AgentID     { return n.Bank }

func (n JobRecord) validate() error {
	err := first(
		func() error { return number("job", n.Version, NoteVersion) },
		func() error { return hexDigits("contract", string(n.Contract), 64, 64) },
		func() error { return unit(n.Unit) },
		func() error { return agent("seller", n.Seller) },
		func() error { return instant("ended", n.Ended) },
	)
	if err != nil {
		return err
	}
	for _, err := range []error{n.Usage.Validate(), n.Measured.Validate()} {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrTerms, err)
		}
	}
	if n.Due < 0 {
		return fmt.Errorf("due %s, want zero or more: %w", n.Due, ErrTerms)
	}
	return nil
}

func (n Verdict) validate() error {
	return first(
		func() error { return number("verdict", n.Version, NoteVersion) },
		func() error { return hexDigits("contract", string(n.Contract), 64, 64) },
		func() error { return unit(n.Unit) },
		func() error { return agent("user", n.User) },
		func() error { return hexDigits("record", n.Record, 64, 64) },
		func() error { return instant("at", n.At) },
		func() error { return why(n) },
	)
}

func why(n Verdict) error {
	if len(n.Why) > MaxWhy || n.Why != protocol.Harmless(n.Why) || n.Agree && n.Why != "" {
		return fmt.Errorf("why of %d bytes, want at most %d without control characters, and none of an agreement: %w", len(n.Why), MaxWhy, ErrTerms)
	}
	return nil
}

func (n Voucher) validate() error {
	return first(
		func() error { return number("voucher", n.Version, NoteVersion) },
		func() error { return agent("bank", n.Bank) },
		func() error { return agent("user", n.User) },
		func() error { return token("conversation", n.Conversation, protocol.MaxConversation) },
		func() error { return currency(n.Currency) },
		func() error { return more("amount", n.Amount) },
		func() error { return instant("until", n.Until) },
	)
}

func (n Quote) validate() error {
	return first(
		func() error { return number("quote", n.Version, NoteVersion) },
		func() error { return agent("bank", n.Bank) },
		func() error { return token("id", n.ID, protocol.MaxConversation) },
		func() error { return agent("user", n.User) },
		func() error { return currency(n.From) },
		func() error { return currency(n.To) },
		func() error { return more("gives", n.Gives) },
		func() error { return more("gets", n.Gets) },
		func() error { return instant("until", n.Until) },
	)
}

func more(field string, amount protocol.Credits) error {
	if amount <= 0 {
		return fmt.Errorf("%s %s, want more than zero: %w", field, amount, ErrTerms)
	}
	return nil
}
