package contract

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// NoteVersion is the version of notes that is written and read.
const NoteVersion = 1

// Cancel asks the seller of one settled unit to take it back.
type Cancel struct {
	Version  int                 `json:"cancel"` // NoteVersion; the name says what note this is
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	User     protocol.AgentID    `json:"user"` // who signs
	At       time.Time           `json:"at"`   // in UTC
	Nonce    string              `json:"nonce"`
}

// Refund asks the bank to return the cost of one settled unit, less a fee that the seller
// keeps: Amount + Fee is the unit's cost.
type Refund struct {
	Version  int                 `json:"refund"` // NoteVersion; the name says what note this is
	Contract protocol.ContractID `json:"contract"`
	Unit     int                 `json:"unit"`
	Seller   protocol.AgentID    `json:"seller"` // who signs
	Amount   protocol.Credits    `json:"amount"`
	Fee      protocol.Credits    `json:"fee"`
}

// Note is a small document that is signed separately from a bundle.
type Note interface {
	Cancel | Refund | JobRecord | Verdict | Voucher | Quote
	signable
}

// VerifiedNote is a note that the agent it names has signed.
type VerifiedNote[N Note] struct {
	Note   N
	Signer identity.Peer
	DER    []byte

	checked bool
}

// Checked reports whether this package verified v.
func (v VerifiedNote[N]) Checked() bool { return v.checked }

// SignNote signs a note as the agent that it names, in DER; now is the signing
// time. The same arguments give the same bytes.
func SignNote[N Note](c *identity.Credential, n N, now time.Time) ([]byte, error) {
	return signDocument(c, n, now)
}

// OpenNote verifies a note of type N as of a time. The caller checks whether its signer
// is a party of the contract.
func OpenNote[N Note](der []byte, trust *identity.Trust, at time.Time) (VerifiedNote[N], error) {
	n, s, peer, err := openDocument[N](der, trust, at)
	if err != nil {
		return VerifiedNote[N]{}, fmt.Errorf("note: %w", err)
	}
	return VerifiedNote[N]{Note: n, Signer: peer, DER: s.der, checked: true}, nil
}

// ReadNote reads a signed note from own records without verifying it. Its Signer is the
// agent that the note names.
func ReadNote[N Note](der []byte) (VerifiedNote[N], error) {
	octets, err := Content(der)
	if err != nil {
		return VerifiedNote[N]{}, err
	}
	n, err := decode[N](octets)
	return VerifiedNote[N]{Note: n, Signer: identity.Peer{ID: n.by()}, DER: der}, err
}

func (n Cancel) by() protocol.AgentID { return n.User }
func (n Refund) by() protocol.AgentID { return n.Seller }

func (n Cancel) validate() error {
	return first(
		func() error { return number("cancel", n.Version, NoteVersion) },
		func() error { return hexDigits("contract", string(n.Contract), 64, 64) },
		func() error { return unit(n.Unit) },
		func() error { return agent("user", n.User) },
		func() error { return instant("at", n.At) },
		func() error { return hexDigits("nonce", n.Nonce, MinNonce, MaxNonce) },
	)
}

func (n Refund) validate() error {
	err := first(
		func() error { return number("refund", n.Version, NoteVersion) },
		func() error { return hexDigits("contract", string(n.Contract), 64, 64) },
		func() error { return unit(n.Unit) },
		func() error { return agent("seller", n.Seller) },
	)
	if err != nil {
		return err
	}
	cost, err := n.Amount.Add(n.Fee)
	if err != nil || n.Amount < 0 || n.Fee < 0 || cost == 0 {
		return fmt.Errorf("refund of %s with a fee of %s, want both at least zero and not both zero: %w", n.Amount, n.Fee, ErrTerms)
	}
	return nil
}

func unit(n int) error {
	if n < 0 || n >= protocol.MaxUnits {
		return fmt.Errorf("unit %d, want 0..%d: %w", n, protocol.MaxUnits-1, ErrTerms)
	}
	return nil
}
