package contract

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

type receipt protocol.Receipt

// ReceiptVersion is the version of protocol.Receipt that is written and read.
const ReceiptVersion = 1

// maxCode bounds the code of a refusal, in bytes.
const maxCode = 32

// VerifiedReceipt is a receipt whose bank's signature was verified.
type VerifiedReceipt struct {
	protocol.Receipt
	Signer identity.Peer // the bank
	DER    []byte        // the bank's SignedData

	checked bool
}

// Checked reports whether this package verified v.
func (v VerifiedReceipt) Checked() bool { return v.checked }

// SignReceipt signs a receipt as its bank, in DER; now is the signing time. The
// same arguments give the same bytes.
func SignReceipt(c *identity.Credential, r protocol.Receipt, now time.Time) ([]byte, error) {
	return signDocument(c, receiptInUTC(r), now)
}

// EncodeReceipt writes the canonical octets of a receipt, which its signature covers.
func EncodeReceipt(r protocol.Receipt) ([]byte, error) { return encode(receiptInUTC(r)) }

func receiptInUTC(r protocol.Receipt) receipt {
	r.Time = r.Time.UTC()
	r.Refunds = slices.Clone(r.Refunds)
	for i := range r.Refunds {
		r.Refunds[i].Time = r.Refunds[i].Time.UTC()
	}
	r.Ends = slices.Clone(r.Ends)
	for i := range r.Ends {
		r.Ends[i].Time = r.Ends[i].Time.UTC()
	}
	return receipt(r)
}

// ReadReceipt reads a receipt in DER without verifying it, from own records or before a
// verification.
func ReadReceipt(der []byte) (protocol.Receipt, error) {
	octets, err := Content(der)
	if err != nil {
		return protocol.Receipt{}, err
	}
	return DecodeReceipt(octets)
}

// OpenReceipt verifies a receipt that its bank signed, as of a time.
func OpenReceipt(der []byte, trust *identity.Trust, at time.Time) (VerifiedReceipt, error) {
	return NewOpener(trust, 0).Receipt(der, at)
}

// knownReceipt is a receipt with a verified signature. Its signer is verified each time.
type knownReceipt struct {
	der     []byte
	receipt receipt
	chain   [][]byte
}

// Receipt is OpenReceipt with the Opener's trust.
func (o *Opener) Receipt(der []byte, at time.Time) (VerifiedReceipt, error) {
	key := tail(der)
	k, remembered := o.receipts.Recall(key)
	remembered = remembered && bytes.Equal(k.der, der)
	var bank identity.Peer
	var err error
	if remembered {
		bank, err = o.trust.Verify(k.chain, at)
	} else {
		var s sealed
		k.receipt, s, bank, err = openDocument[receipt](der, o.trust, at)
		k.der, k.chain = s.der, s.chain
	}
	if err != nil {
		return VerifiedReceipt{}, fmt.Errorf("receipt: %w", err)
	}
	if !remembered && len(k.der) <= maxRemembered {
		o.receipts.Remember(key, k)
	}
	r := k.receipt
	r.Refunds, r.Ends = slices.Clone(r.Refunds), slices.Clone(r.Ends) // the remembered ones must not change
	return VerifiedReceipt{Receipt: protocol.Receipt(r), Signer: bank, DER: k.der, checked: true}, nil
}

// DecodeReceipt reads the canonical octets of a receipt, for example from Content. It
// verifies no signature.
func DecodeReceipt(octets []byte) (protocol.Receipt, error) {
	r, err := decode[receipt](octets)
	return protocol.Receipt(r), err
}

func (r receipt) by() protocol.AgentID { return r.Bank }

func (r receipt) validate() error {
	err := first(
		func() error { return number("version", r.Version, ReceiptVersion) },
		func() error { return agent("bank", r.Bank) },
		func() error { return hexDigits("contract", string(r.Contract), 64, 64) },
		func() error { return agent("user", r.User) },
		func() error { return currency(r.Currency) },
		func() error { return instant("time", r.Time) },
		r.validateOutcome,
		r.validateRefunds,
		r.validateEnds,
	)
	if err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	return nil
}

// validateOutcome checks that the receipt is of a decision in an existing record, or of
// a contract that is void by its settle-by alone. A void one moves nothing and has a reason.
func (r receipt) validateOutcome() error {
	if r.Entry == 0 && (r.Outcome != protocol.OutcomeVoid || r.Reason != protocol.CodeSettleBy) {
		return fmt.Errorf("entry 0, want the number of the deciding record: %w", ErrTerms)
	}
	switch {
	case r.Outcome == protocol.OutcomeSettled && r.Total > 0 && r.Reason == "":
		return nil
	case r.Outcome == protocol.OutcomeVoid && r.Total == 0 && len(r.Refunds) == 0:
		return token("reason", string(r.Reason), maxCode)
	}
	return fmt.Errorf("outcome %.80q with total %s, reason %.80q and %d refunds, want settled with a total or void with a reason: %w",
		r.Outcome, r.Total, r.Reason, len(r.Refunds), ErrTerms)
}

// validateRefunds checks that units rise and that refunds do not exceed the payment.
func (r receipt) validateRefunds() error {
	sum, last := protocol.Credits(0), -1
	for _, f := range r.Refunds {
		if f.Unit <= last || f.Unit >= protocol.MaxUnits {
			return fmt.Errorf("refund of unit %d after %d, want rising numbers below %d: %w", f.Unit, last, protocol.MaxUnits, ErrTerms)
		}
		if f.Amount < 0 || f.Amount > r.Total-sum {
			return fmt.Errorf("refund of unit %d: %s, want 0..%s: %w", f.Unit, f.Amount, r.Total-sum, ErrTerms)
		}
		if err := instant("refund time", f.Time); err != nil {
			return err
		}
		sum, last = sum+f.Amount, f.Unit
	}
	return nil
}

// validateEnds checks that only modes that pay after the fact have ends, that units rise
// and that payments and refunds do not exceed the hold.
func (r receipt) validateEnds() error {
	if r.Mode == "" && len(r.Ends) == 0 {
		return nil
	}
	if r.Mode == protocol.ModeOnReservation || !r.Mode.Known() || r.Outcome != protocol.OutcomeSettled {
		return fmt.Errorf("mode %.80q in a receipt for %.80q with %d ends: %w", r.Mode, r.Outcome, len(r.Ends), ErrTerms)
	}
	sum, last := protocol.Credits(0), -1
	for _, f := range r.Refunds {
		sum += f.Amount // at most the total, by validateRefunds
	}
	for _, e := range r.Ends {
		if e.Unit <= last || e.Unit >= protocol.MaxUnits || !e.How.Known() || e.Entry == 0 {
			return fmt.Errorf("end %.80q of unit %d after %d by entry %d: %w", e.How, e.Unit, last, e.Entry, ErrTerms)
		}
		if e.Paid < 0 || e.Paid > r.Total-sum {
			return fmt.Errorf("end of unit %d: paid %s, want 0..%s: %w", e.Unit, e.Paid, r.Total-sum, ErrTerms)
		}
		if err := instant("end time", e.Time); err != nil {
			return err
		}
		sum, last = sum+e.Paid, e.Unit
	}
	return nil
}
