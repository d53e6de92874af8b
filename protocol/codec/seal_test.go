package codec_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"ramp/protocol/codec"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

func TestSealSignsReceiptsOnTheWayOut(t *testing.T) {
	m := newMarket(t)
	msg := m.sampleOf(t, "decision")
	d := msg.Body.(message.Decision)
	unsigned := &contract.VerifiedReceipt{Receipt: d.Receipt.Receipt}
	d.Receipt = unsigned
	msg.Body, msg.Sender = d, m.bank.ID

	b, err := codec.Seal(m.bank, msg, now)
	must(t, err)
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.bank.ID, now)
	must(t, err)
	if r := got.Body.(message.Decision).Receipt; !r.Checked() || r.Signer.ID != m.bank.ID || r.Entry != 7 {
		t.Errorf("got %+v", r)
	}
	if unsigned.DER != nil {
		t.Error("the role's own receipt was changed")
	}
	again, err := codec.Seal(m.bank, msg, now)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("the same receipt is sealed in other bytes (%v)", err)
	}
	if _, err := codec.Seal(m.seller, msg, now); !errors.Is(err, contract.ErrSigner) {
		t.Errorf("signed for another bank: %v", err)
	}
}

func TestSealLeavesOtherMessagesAlone(t *testing.T) {
	m := newMarket(t)
	for _, s := range samples() {
		msg := m.filled(s)
		b, err := codec.Seal(m.seller, msg, now)
		must(t, err)
		want, err := codec.Encode(msg)
		if err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: sealed in other bytes than encoded (%v)", s.body.Kind(), err)
		}
	}
}

// A decision for several parties is signed once: the second receipt has the signing time
// of the first. Another decision, or a further refund, is signed again.
func TestASignerSignsADecisionOnce(t *testing.T) {
	m := newMarket(t)
	msg := m.sampleOf(t, "decision")
	d := msg.Body.(message.Decision)
	unsigned := contract.VerifiedReceipt{Receipt: d.Receipt.Receipt}
	d.Receipt = &unsigned
	msg.Body, msg.Sender = d, m.bank.ID
	s := codec.NewSigner(m.bank, 4)
	der := func(at time.Time) []byte {
		signed, err := s.Sign(msg, at)
		must(t, err)
		b, err := codec.Encode(signed)
		must(t, err)
		opened, err := codec.Opener{Trust: m.trust}.Open(b, m.bank.ID, now)
		must(t, err)
		r := opened.Body.(message.Decision).Receipt
		if r.Entry != unsigned.Entry {
			t.Fatalf("entry %d is told as %d", unsigned.Entry, r.Entry)
		}
		return r.DER
	}
	first := der(now)
	if !bytes.Equal(first, der(now.Add(time.Minute))) {
		t.Error("the same decision was signed twice")
	}
	unsigned.Entry++
	if bytes.Equal(first, der(now)) {
		t.Error("another decision has the same signature")
	}
	if d.Receipt.DER != nil {
		t.Error("the role's own receipt was changed")
	}
	if _, err := codec.NewSigner(m.seller, 4).Sign(msg, now); !errors.Is(err, contract.ErrSigner) {
		t.Errorf("signed for another bank: %v", err)
	}
}
