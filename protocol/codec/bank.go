package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// setBankBody is setBody for what banks alone are asked and answer.
func setBankBody(e *wire.Envelope, body protocol.Body) bool {
	switch b := body.(type) {
	case message.JobReport:
		e.Body = &wire.Envelope_JobReport{JobReport: &wire.JobReport{Record: b.Signed.DER, Bundle: b.Bundle.DER}}
	case message.JobVerdict:
		e.Body = &wire.Envelope_JobVerdict{JobVerdict: &wire.JobVerdict{Verdict: b.Signed.DER}}
	case message.VoucherRequest:
		e.Body = &wire.Envelope_VoucherRequest{VoucherRequest: &wire.VoucherRequest{
			Conversation: b.Conversation, Currency: b.Currency, Amount: int64(b.Amount), Until: nanos(b.Until),
		}}
	case message.Vouched:
		e.Body = &wire.Envelope_Voucher{Voucher: &wire.Voucher{Voucher: b.Signed.DER}}
	case message.QuoteRequest:
		e.Body = &wire.Envelope_QuoteRequest{QuoteRequest: &wire.QuoteRequest{Id: b.ID, From: b.From, To: b.To, Gives: int64(b.Gives)}}
	case message.ExchangeRequest:
		e.Body = &wire.Envelope_ExchangeRequest{ExchangeRequest: &wire.ExchangeRequest{Id: b.ID}}
	case message.Quoted:
		e.Body = &wire.Envelope_Quote{Quote: &wire.Quote{Quote: b.Signed.DER}}
	case message.Readmission:
		e.Body = &wire.Envelope_Readmission{Readmission: &wire.Readmission{Receipt: b.Receipt.DER, Bundle: b.Bundle.DER}}
	default:
		return setLaunchBody(e, body)
	}
	return true
}

func (r *reader) bankBody(e *wire.Envelope) protocol.Body {
	switch b := e.Body.(type) {
	case *wire.Envelope_JobReport:
		return r.jobReport(b.JobReport)
	case *wire.Envelope_JobVerdict:
		return message.JobVerdict{Signed: document(r, "verdict", b.JobVerdict.GetVerdict(), r.signed.verdict)}
	case *wire.Envelope_VoucherRequest:
		w := b.VoucherRequest
		return message.VoucherRequest{
			Conversation: r.token("conversation", w.GetConversation()), Currency: r.currency(w.GetCurrency()),
			Amount: r.price("amount", w.GetAmount()), Until: r.needed("until", w.GetUntil()),
		}
	case *wire.Envelope_Voucher:
		return message.Vouched{Signed: document(r, "voucher", b.Voucher.GetVoucher(), r.signed.voucher)}
	case *wire.Envelope_QuoteRequest:
		w := b.QuoteRequest
		return message.QuoteRequest{
			ID: r.token("id", w.GetId()), From: r.currency(w.GetFrom()), To: r.currency(w.GetTo()), Gives: r.price("gives", w.GetGives()),
		}
	case *wire.Envelope_ExchangeRequest:
		return message.ExchangeRequest{ID: r.token("id", b.ExchangeRequest.GetId())}
	case *wire.Envelope_Quote:
		return message.Quoted{Signed: document(r, "quote", b.Quote.GetQuote(), r.signed.quote)}
	case *wire.Envelope_Readmission:
		return r.readmission(b.Readmission)
	}
	return r.launchBody(e)
}

// token reads a name as long as a conversation's, which must be there.
func (r *reader) token(field, s string) string {
	if s == "" {
		r.malformed("%s: none", field)
	}
	return r.name(field, s, protocol.MaxConversation)
}

// jobReport reads a record with the bundle that it is about.
func (r *reader) jobReport(w *wire.JobReport) message.JobReport {
	q := message.JobReport{
		Bundle: document(r, "bundle", w.GetBundle(), r.signed.bundle),
		Signed: document(r, "record", w.GetRecord(), r.signed.job),
	}
	if r.err == nil && q.Bundle.ID != q.Signed.Note.Contract {
		r.fail(protocol.CodeMismatch, "a record of contract %s with the bundle of %s", q.Signed.Note.Contract, q.Bundle.ID)
	}
	return q
}

// readmission reads a receipt with the bundle that it is about.
func (r *reader) readmission(w *wire.Readmission) message.Readmission {
	q := message.Readmission{
		Bundle:  document(r, "bundle", w.GetBundle(), r.signed.bundle),
		Receipt: document(r, "receipt", w.GetReceipt(), r.signed.receipt),
	}
	if r.err == nil && q.Bundle.ID != q.Receipt.Contract {
		r.fail(protocol.CodeMismatch, "a receipt of contract %s with the bundle of %s", q.Receipt.Contract, q.Bundle.ID)
	}
	return q
}

func (v verifier) job(der []byte) (contract.VerifiedNote[contract.JobRecord], error) {
	return contract.OpenNote[contract.JobRecord](der, v.Trust, v.at)
}

func (v verifier) verdict(der []byte) (contract.VerifiedNote[contract.Verdict], error) {
	return contract.OpenNote[contract.Verdict](der, v.Trust, v.at)
}

func (v verifier) voucher(der []byte) (contract.VerifiedNote[contract.Voucher], error) {
	return contract.OpenNote[contract.Voucher](der, v.Trust, v.at)
}

func (v verifier) quote(der []byte) (contract.VerifiedNote[contract.Quote], error) {
	return contract.OpenNote[contract.Quote](der, v.Trust, v.at)
}

func (unread) job([]byte) (v contract.VerifiedNote[contract.JobRecord], err error)   { return v, nil }
func (unread) verdict([]byte) (v contract.VerifiedNote[contract.Verdict], err error) { return v, nil }
func (unread) voucher([]byte) (v contract.VerifiedNote[contract.Voucher], err error) { return v, nil }
func (unread) quote([]byte) (v contract.VerifiedNote[contract.Quote], err error)     { return v, nil }

func (kept) job(der []byte) (contract.VerifiedNote[contract.JobRecord], error) {
	v, err := keptNote[contract.JobRecord](der)
	v.Signer.ID = v.Note.Seller
	return v, err
}

func (kept) verdict(der []byte) (contract.VerifiedNote[contract.Verdict], error) {
	v, err := keptNote[contract.Verdict](der)
	v.Signer.ID = v.Note.User
	return v, err
}

func (kept) voucher(der []byte) (contract.VerifiedNote[contract.Voucher], error) {
	v, err := keptNote[contract.Voucher](der)
	v.Signer.ID = v.Note.Bank
	return v, err
}

func (kept) quote(der []byte) (contract.VerifiedNote[contract.Quote], error) {
	v, err := keptNote[contract.Quote](der)
	v.Signer.ID = v.Note.Bank
	return v, err
}
