package codec_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/codec"
)

// An opened message can be sent, read and shown again. Otherwise the error names the
// fault, and its answer can be sent.
func FuzzOpen(f *testing.F) {
	m := newMarket(f)
	for _, s := range samples() {
		b, err := codec.Encode(m.filled(s))
		must(f, err)
		f.Add(b)
	}
	o := codec.NewOpener(m.trust, 64)
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := o.Open(b, m.seller.ID, now)
		if err != nil {
			checkError(t, m, err)
			return
		}
		readAsByTheLibrary(t, b)
		again, err := codec.EncodeTrace(msg)
		if err != nil {
			t.Fatalf("opened, but not encoded: %v", err)
		}
		got, err := codec.DecodeTrace(again)
		if err != nil {
			t.Fatalf("encoded, but not read: %v", err)
		}
		if diff := cmp.Diff(untrusted(msg), got, equal()); diff != "" {
			t.Fatal(diff)
		}
		a := codec.ToACL(msg)
		if err := a.Validate(); err != nil {
			t.Fatalf("opened, but not to be shown: %v", err)
		}
		if _, err := parse(acl.Format(a)); err != nil {
			t.Fatalf("shown, but not read: %v", err)
		}
	})
}

func checkError(t *testing.T, m *market, err error) {
	t.Helper()
	var e *codec.Error
	if !errors.As(err, &e) || e.Envelope.Sender != m.seller.ID {
		t.Fatalf("%v: want an Error from %s", err, m.seller.ID)
	}
	answer, ok := e.Answer(m.bank.ID)
	if !ok {
		return
	}
	if _, err := codec.Encode(answer); err != nil {
		t.Fatalf("the answer %+v is not encoded: %v", answer, err)
	}
	if len(answer.Receivers) != 1 || answer.Receivers[0] != m.seller.ID || answer.Performative == protocol.Inform {
		t.Fatalf("the answer is %+v", answer)
	}
}

func FuzzDecodeTrace(f *testing.F) {
	m := newMarket(f)
	for _, s := range samples() {
		b, err := codec.EncodeTrace(m.filled(s))
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := codec.DecodeTrace(b)
		if err != nil {
			return
		}
		again, err := codec.EncodeTrace(msg)
		if err != nil {
			t.Fatalf("read, but not encoded: %v", err)
		}
		got, err := codec.DecodeTrace(again)
		if diff := cmp.Diff(msg, got, equal()); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}
