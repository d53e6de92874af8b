package codec_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/token"
	"math/big"
	"testing"
	"time"

	mathrand "math/rand/v2"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

func TestSignaturesThatDoNotCount(t *testing.T) {
	m := newMarket(t)
	foreign := newForeign(t)
	spoilt := func(der []byte) []byte {
		der = bytes.Clone(der)
		der[len(der)-1] ^= 1 // in the signature itself
		return der
	}
	cases := []struct {
		name, kind string
		change     func(*wire.Envelope)
		at         time.Time
		code       protocol.Code
		want       error
	}{
		{"a bundle with another signature", "confirmation", func(e *wire.Envelope) { e.GetConfirmation().Bundle = spoilt(m.bundle.DER) }, now, protocol.CodeSignature, contract.ErrSignature},
		{"a sale with another signature", "settlement", func(e *wire.Envelope) { e.GetSettlement().Sale = spoilt(m.sale.DER) }, now, protocol.CodeSignature, contract.ErrSignature},
		{"a bundle of a foreign authority", "annulment", func(e *wire.Envelope) { e.GetAnnulment().Bundle = foreign.bundle.DER }, now, protocol.CodeSignature, identity.ErrForeign},
		{"a certificate that has expired", "countersigned", func(*wire.Envelope) {}, now.Add(20 * 24 * time.Hour), protocol.CodeSignature, identity.ErrExpired},
		{"a certificate that is not yet valid", "refund-request", func(*wire.Envelope) {}, start.Add(-time.Hour), protocol.CodeSignature, identity.ErrNotYetValid},
		{"a bundle in place of a sale", "settlement", func(e *wire.Envelope) { e.GetSettlement().Sale = m.bundle.DER }, now, protocol.CodeMalformed, contract.ErrMalformed},
		{"a cancellation in place of a refund", "refund-request", func(e *wire.Envelope) { e.GetRefundRequest().Refund = m.cancel.DER }, now, protocol.CodeMalformed, contract.ErrMalformed},
		{"a receipt in place of a cancellation", "unit-cancellation", func(e *wire.Envelope) { e.GetUnitCancellation().Cancel = m.receipt.DER }, now, protocol.CodeMalformed, contract.ErrMalformed},
		{"a receipt that is noise", "decision", func(e *wire.Envelope) { e.GetDecision().Receipt = []byte("noise") }, now, protocol.CodeMalformed, contract.ErrMalformed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := m.mangled(t, c.kind, c.change)
			for _, o := range []codec.Opener{{Trust: m.trust}, codec.NewOpener(m.trust, 4)} {
				_, err := o.Open(b, m.user.ID, c.at)
				var e *codec.Error
				if !errors.As(err, &e) || e.Code != c.code || !errors.Is(err, c.want) {
					t.Errorf("got %v; want %s and %v", err, c.code, c.want)
				}
			}
		})
	}
}

// What was decided stands: the bundle of a user whose certificate was revoked since counts beside what
// is said about it later, but for nothing new.
func TestADecidedBundleOutlivesItsUsersCertificate(t *testing.T) {
	m := newMarket(t)
	crl, err := m.ca.Revoke(nil, []*big.Int{m.user.Chain[0].SerialNumber}, now.Add(time.Minute))
	must(t, err)
	m.trust, err = identity.NewTrust(m.ca.CertPEM(), crl)
	must(t, err)
	later := now.Add(10 * time.Minute)
	for kind, want := range map[string]error{
		"job-report": nil, "refund-request": nil, "readmission": nil, "bundle-copy": nil,
		"confirmation": identity.ErrRevoked, "settlement": identity.ErrRevoked, "annulment": identity.ErrRevoked,
	} {
		b := m.mangled(t, kind, func(*wire.Envelope) {})
		for _, o := range []codec.Opener{{Trust: m.trust}, codec.NewOpener(m.trust, 4)} {
			if _, err := o.Open(b, m.seller.ID, later); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", kind, err, want)
			}
		}
	}
	for kind, spoil := range map[string]func(e *wire.Envelope){
		"readmission": func(e *wire.Envelope) { e.GetReadmission().Bundle = newForeign(t).bundle.DER },
		"job-report":  func(e *wire.Envelope) { e.GetJobReport().Bundle[len(m.bundle.DER)-1] ^= 1 },
	} {
		if _, err := (codec.Opener{Trust: m.trust}).Open(m.mangled(t, kind, spoil), m.seller.ID, later); err == nil {
			t.Errorf("%s with a bad bundle", kind)
		}
	}
}

// newForeign is a market with another authority.
func newForeign(t *testing.T) *market {
	t.Helper()
	ca, err := identity.NewCA("Foreign CA", start, 48*time.Hour, mathrand.NewChaCha8([32]byte{9}))
	must(t, err)
	m := &market{user: issue(t, ca, "ann"), seller: issue(t, ca, "site"), bank: issue(t, ca, "bank")}
	m.trust, err = identity.NewTrust(ca.CertPEM(), nil)
	must(t, err)
	m.sign(t)
	return m
}

func TestARefundIsAboutItsBundle(t *testing.T) {
	m := newMarket(t)
	other := m.terms()
	other.Nonce = "fedcba9876543210"
	der, err := contract.Sign(m.user, other, now)
	must(t, err)
	b := m.mangled(t, "refund-request", func(e *wire.Envelope) { e.GetRefundRequest().Bundle = der })
	refused(t, m, b, protocol.CodeMismatch, "with the bundle of")
}

// constants are the string constants of a type in package protocol.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	words := map[string]bool{}
	each(t, "..", func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ {
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					literal(lit, words)
				}
			}
		}
		return true
	})
	var list []string
	for w := range words {
		list = append(list, w)
	}
	if len(list) == 0 {
		t.Fatalf("no constants of type %s", typ)
	}
	return list
}

func TestTheClosedSetsAreThoseOfPackageProtocol(t *testing.T) {
	m := newMarket(t)
	o := codec.Opener{Trust: m.trust}
	sets := []struct {
		typ, kind string
		set       func(*wire.Envelope, string)
	}{
		{"Code", "refusal", func(e *wire.Envelope, s string) { e.GetRefusal().Reasons[0].Code = s }},
		{"Mode", "cfp", func(e *wire.Envelope, s string) { e.GetCfp().Modes[0] = s }},
		{"Outcome", "decision", func(e *wire.Envelope, s string) { setOutcome(e.GetDecision(), m, s) }},
	}
	for _, s := range sets {
		for _, word := range constants(t, s.typ) {
			b := m.mangled(t, s.kind, func(e *wire.Envelope) { s.set(e, word) })
			if _, err := o.Open(b, m.seller.ID, now); err != nil {
				t.Errorf("%s %q: %v", s.typ, word, err)
			}
		}
	}
}

func setOutcome(d *wire.Decision, m *market, s string) {
	d.Outcome, d.Receipt = s, nil
	switch protocol.Outcome(s) {
	case protocol.OutcomeSettled:
		d.Receipt = m.receipt.DER
	case protocol.OutcomeVoid:
		r := m.receipt.Receipt
		r.Outcome, r.Total, r.Reason = protocol.OutcomeVoid, 0, protocol.CodeFunds
		d.Receipt, _ = contract.SignReceipt(m.bank, r, now)
	}
}

// Of a void contract a seller keeps the receipt only.
func TestAReceiptIsReadmittedWithoutItsBundleOnlyIfItIsVoid(t *testing.T) {
	m := newMarket(t)
	var d wire.Decision
	setOutcome(&d, m, string(protocol.OutcomeVoid))
	void, err := contract.OpenReceipt(d.Receipt, m.trust, now)
	must(t, err)
	for name, r := range map[string]contract.VerifiedReceipt{"void": void, "settled": m.receipt} {
		msg := m.filled(sample{protocol.Request, protocol.ProtocolRequest, message.Readmission{}})
		msg.Body = message.Readmission{Receipt: r}
		b, err := codec.Encode(msg)
		if name != "void" {
			if err == nil {
				t.Errorf("%s: it is written", name)
			}
			continue
		}
		must(t, err)
		got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
		if err != nil || got.Body.(message.Readmission).Receipt.Outcome != protocol.OutcomeVoid {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	b := m.mangled(t, "readmission", func(e *wire.Envelope) { e.GetReadmission().Bundle = nil })
	if _, err := (codec.Opener{Trust: m.trust}).Open(b, m.seller.ID, now); err == nil {
		t.Error("settled, and read without its bundle")
	}
}
