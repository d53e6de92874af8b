package codec_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// Hints of versions without contracts keep their meaning and their bytes.
func TestHintsWithoutAContractAreReadAsBefore(t *testing.T) {
	m := newMarket(t)
	old, err := os.ReadFile("testdata/uncountered.golden")
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(old)), "\n") {
		kind, text, _ := strings.Cut(line, " ")
		b, err := hex.DecodeString(text)
		must(t, err)
		got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
		must(t, err)
		hints := 0
		for _, r := range reasonsOf(got.Body) {
			for _, h := range r.Hints {
				hints++
				if h.Tariff != (protocol.Tariff{}) {
					t.Errorf("%s: a hint has the contract %+v", kind, h.Tariff)
				}
			}
		}
		if again, err := codec.Encode(got); err != nil || !bytes.Equal(b, again) || hints == 0 {
			t.Errorf("%s with %d hints is written otherwise: %v", kind, hints, err)
		}
	}
}

func reasonsOf(b protocol.Body) []protocol.Reason {
	switch b := b.(type) {
	case message.Proposal:
		return b.Refusals
	case message.Refusal:
		return b.Reasons
	}
	return nil
}

// A counter-offer with an invalid contract is malformed and changes nothing.
func TestACounterOfferMustBeAValidContract(t *testing.T) {
	m := newMarket(t)
	good := func() *wire.Hint {
		return &wire.Hint{Start: now.Add(time.Hour).UnixNano(), Cores: 4, Price: 9, TimeLimit: int64(time.Hour), PHi: protocol.Core, PTop: 40, QHi: 2 * protocol.Core, QTop: 1, Prepay: 7}
	}
	for name, spoil := range map[string]func(h *wire.Hint){
		"":                                  func(*wire.Hint) {},
		"time limit":                        func(h *wire.Hint) { h.TimeLimit = 0 },
		"time limit -1ns":                   func(h *wire.Hint) { h.TimeLimit = -1 },
		"time limit 87600h0m0.000000001s":   func(h *wire.Hint) { h.TimeLimit = int64(protocol.MaxTimeRuns) + 1 },
		"price of cycles P: rates":          func(h *wire.Hint) { h.PLo = -1 },
		"price of cycles P: the minimum":    func(h *wire.Hint) { h.PLo = h.PHi + 1 },
		"price of shares Q: rates":          func(h *wire.Hint) { h.QHi = protocol.MaxRate + 1 },
		"price of shares Q: the minimum":    func(h *wire.Hint) { h.QLo = h.QHi + 1 },
		"Pmax of a hint -0.000001, want":    func(h *wire.Hint) { h.PTop = -1 },
		"Qmax of a hint -0.000001, want":    func(h *wire.Hint) { h.QTop = -1 },
		"prepayment of a hint -0.000001, w": func(h *wire.Hint) { h.Prepay = -1 },
	} {
		h := good()
		spoil(h)
		b := m.mangled(t, "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Hints = []*wire.Hint{h} })
		_, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
		switch {
		case name == "" && err != nil:
			t.Errorf("a good one: %v", err)
		case name != "" && (err == nil || !strings.Contains(err.Error(), name)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
