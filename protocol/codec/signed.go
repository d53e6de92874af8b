package codec

import (
	"encoding/json"
	"errors"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// signed is what a reader does with signed documents.
type signed interface {
	bundle(der []byte) (contract.Verified, error)
	sale(der []byte) (contract.Sale, error)
	receipt(der []byte) (contract.VerifiedReceipt, error)
	cancel(der []byte) (contract.VerifiedNote[contract.Cancel], error)
	refund(der []byte) (contract.VerifiedNote[contract.Refund], error)
	job(der []byte) (contract.VerifiedNote[contract.JobRecord], error)
	verdict(der []byte) (contract.VerifiedNote[contract.Verdict], error)
	voucher(der []byte) (contract.VerifiedNote[contract.Voucher], error)
	quote(der []byte) (contract.VerifiedNote[contract.Quote], error)
}

// document reads a signed document by one of the functions of signed.
func document[D any](r *reader, field string, der []byte, open func([]byte) (D, error)) D {
	var none D
	if len(der) == 0 || len(der) > protocol.MaxSignature {
		r.malformed("%s of %d bytes, want 1..%d", field, len(der), protocol.MaxSignature)
	}
	if r.err != nil {
		return none
	}
	d, err := open(der)
	if err != nil {
		r.fail(codeOf(err), "%s: %w", field, err)
		return none
	}
	return d
}

// codeOf tells a document that is not one from a signature that does not count.
func codeOf(err error) protocol.Code {
	if errors.Is(err, contract.ErrMalformed) || errors.Is(err, contract.ErrTerms) {
		return protocol.CodeMalformed
	}
	return protocol.CodeSignature
}

// verifier verifies, as things stand at a time.
type verifier struct {
	Opener
	at time.Time
}

func (v verifier) bundle(der []byte) (contract.Verified, error) {
	if v.Contracts == nil {
		return contract.OpenBundle(der, v.Trust, v.at)
	}
	return v.Contracts.Bundle(der, v.at)
}

func (v verifier) sale(der []byte) (contract.Sale, error) {
	if v.Contracts == nil {
		return contract.OpenSale(der, v.Trust, v.at)
	}
	return v.Contracts.Sale(der, v.at)
}

func (v verifier) receipt(der []byte) (contract.VerifiedReceipt, error) {
	if v.Contracts == nil {
		return contract.OpenReceipt(der, v.Trust, v.at)
	}
	return v.Contracts.Receipt(der, v.at)
}

func (v verifier) cancel(der []byte) (contract.VerifiedNote[contract.Cancel], error) {
	return contract.OpenNote[contract.Cancel](der, v.Trust, v.at)
}

func (v verifier) refund(der []byte) (contract.VerifiedNote[contract.Refund], error) {
	return contract.OpenNote[contract.Refund](der, v.Trust, v.at)
}

// unread leaves documents alone: what is about to be sent was signed or verified
// here.
type unread struct{}

func (unread) bundle([]byte) (v contract.Verified, err error)                      { return v, nil }
func (unread) sale([]byte) (s contract.Sale, err error)                            { return s, nil }
func (unread) receipt([]byte) (v contract.VerifiedReceipt, err error)              { return v, nil }
func (unread) cancel([]byte) (v contract.VerifiedNote[contract.Cancel], err error) { return v, nil }
func (unread) refund([]byte) (v contract.VerifiedNote[contract.Refund], err error) { return v, nil }

// kept reads one's own records: what the document says, and that its signer is
// whom it names, because that was verified before it was kept. Who countersigned
// a sale stands in no document: Seller is empty.
type kept struct{}

func (kept) bundle(der []byte) (contract.Verified, error) {
	octets, err := contract.Content(der)
	if err != nil {
		return contract.Verified{}, err
	}
	b, err := contract.Decode(octets)
	v := contract.Verified{ID: contract.ID(octets), Bundle: b, DER: der}
	v.User.ID = b.User
	return v, err
}

func (k kept) sale(der []byte) (contract.Sale, error) {
	inner, err := contract.Content(der)
	if err != nil {
		return contract.Sale{}, err
	}
	v, err := k.bundle(inner)
	return contract.Sale{Verified: v, DER: der}, err
}

func (kept) receipt(der []byte) (contract.VerifiedReceipt, error) {
	octets, err := contract.Content(der)
	if err != nil {
		return contract.VerifiedReceipt{}, err
	}
	receipt, err := contract.DecodeReceipt(octets)
	v := contract.VerifiedReceipt{Receipt: receipt, DER: der}
	v.Signer.ID = receipt.Bank
	return v, err
}

func (kept) cancel(der []byte) (contract.VerifiedNote[contract.Cancel], error) {
	v, err := keptNote[contract.Cancel](der)
	v.Signer.ID = v.Note.User
	return v, err
}

func (kept) refund(der []byte) (contract.VerifiedNote[contract.Refund], error) {
	v, err := keptNote[contract.Refund](der)
	v.Signer.ID = v.Note.Seller
	return v, err
}

func keptNote[N contract.Note](der []byte) (v contract.VerifiedNote[N], err error) {
	octets, err := contract.Content(der)
	if err != nil {
		return v, err
	}
	v.DER = der
	return v, json.Unmarshal(octets, &v.Note)
}
