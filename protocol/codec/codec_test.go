package codec_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestOpenReadsWhatEncodeWrites(t *testing.T) {
	m := newMarket(t)
	for name, o := range map[string]codec.Opener{"with memory": codec.NewOpener(m.trust, 8), "without": {Trust: m.trust}} {
		for _, s := range samples() {
			t.Run(s.body.Kind()+" "+name, func(t *testing.T) {
				msg := m.filled(s)
				b, err := codec.Encode(msg)
				must(t, err)
				got, err := o.Open(b, m.seller.ID, now)
				must(t, err)
				if diff := cmp.Diff(msg, got, equal()); diff != "" {
					t.Error(diff)
				}
				again, err := codec.Encode(got)
				if err != nil || !bytes.Equal(b, again) {
					t.Errorf("the same message gives other bytes (%v)", err)
				}
			})
		}
	}
}

func TestDecodeTraceReadsWhatEncodeTraceWrites(t *testing.T) {
	m := newMarket(t)
	for _, s := range samples() {
		t.Run(s.body.Kind(), func(t *testing.T) {
			msg := m.filled(s)
			b, err := codec.EncodeTrace(msg)
			must(t, err)
			got, err := codec.DecodeTrace(b)
			must(t, err)
			if diff := cmp.Diff(untrusted(msg), got, equal()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// untrusted is msg as read from own records: not checked, and without the chains and
// times of signatures.
func untrusted(msg protocol.Message) protocol.Message {
	bundle := func(v contract.Verified) contract.Verified {
		out := contract.Verified{ID: v.ID, Bundle: v.Bundle, DER: v.DER}
		out.User.ID = v.User.ID
		return out
	}
	switch b := msg.Body.(type) {
	case message.Confirmation:
		b.Bundle = bundle(b.Bundle)
		msg.Body = b
	case message.Annulment:
		b.Bundle = bundle(b.Bundle)
		msg.Body = b
	case message.Countersigned:
		b.Sale = contract.Sale{Verified: bundle(b.Sale.Verified), DER: b.Sale.DER}
		msg.Body = b
	case message.Settlement:
		b.Sale = contract.Sale{Verified: bundle(b.Sale.Verified), DER: b.Sale.DER}
		msg.Body = b
	case message.Decision:
		receipt := plainReceipt(*b.Receipt)
		b.Receipt = &receipt
		msg.Body = b
	case message.UnitCancellation:
		b.Signed = plainNote(b.Signed)
		msg.Body = b
	case message.RefundRequest:
		b.Signed, b.Bundle = plainNote(b.Signed), bundle(b.Bundle)
		msg.Body = b
	case message.JobReport:
		b.Signed, b.Bundle = plainNote(b.Signed), bundle(b.Bundle)
		msg.Body = b
	case message.Readmission:
		b.Receipt, b.Bundle = plainReceipt(b.Receipt), bundle(b.Bundle)
		msg.Body = b
	case message.BundleCopy:
		b.Bundle = bundle(b.Bundle)
		msg.Body = b
	case message.JobVerdict:
		msg.Body = message.JobVerdict{Signed: plainNote(b.Signed)}
	case message.Acceptance:
		if b.Voucher != nil {
			v := plainNote(*b.Voucher)
			b.Voucher = &v
		}
		msg.Body = b
	case message.Vouched:
		msg.Body = message.Vouched{Signed: plainNote(b.Signed)}
	case message.Quoted:
		msg.Body = message.Quoted{Signed: plainNote(b.Signed)}
	}
	return msg
}

func plainReceipt(v contract.VerifiedReceipt) contract.VerifiedReceipt {
	out := contract.VerifiedReceipt{Receipt: v.Receipt, DER: v.DER}
	out.Signer.ID = v.Signer.ID
	return out
}

func plainNote[N contract.Note](v contract.VerifiedNote[N]) contract.VerifiedNote[N] {
	out := contract.VerifiedNote[N]{Note: v.Note, DER: v.DER}
	out.Signer.ID = v.Signer.ID
	return out
}

func TestATraceMustNameAnAgent(t *testing.T) {
	m := newMarket(t)
	msg := m.filled(samples()[0])
	msg.Sender = protocol.LocalQueue
	if _, err := codec.EncodeTrace(msg); err == nil {
		t.Error("a local sender was written")
	}
	b, err := codec.Encode(m.filled(samples()[0]))
	must(t, err)
	if got, err := codec.DecodeTrace(b); err == nil {
		t.Errorf("a message without a sender was read as from %q", got.Sender)
	}
}

// A golden file has the bytes of every kind: agents of different versions talk to each
// other, so they must not change. Package contract tests the signed documents.
func TestTheBytesAreFixed(t *testing.T) {
	m := newMarket(t)
	var out strings.Builder
	for _, s := range samples() {
		msg := m.filled(s)
		if _, ok := msg.Body.(message.Decision); ok {
			msg.Body = message.Decision{Contract: hex64, Outcome: protocol.OutcomeGathering, Reason: protocol.CodeFunds}
		}
		if a, ok := msg.Body.(message.Acceptance); ok {
			a.Voucher = nil
			msg.Body = a
		}
		msg.Receivers = []protocol.AgentID{protocol.Everyone}
		b, err := codec.Encode(msg)
		must(t, err)
		if bytes.Contains(b, []byte{0x2a, 0x86, 0x48, 0x86, 0xf7}) { // an OID of CMS
			continue
		}
		fmt.Fprintf(&out, "%s %s\n", s.body.Kind(), hex.EncodeToString(b))
	}
	const file = "testdata/bytes.golden"
	if *update {
		must(t, os.WriteFile(file, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("the wire format has changed:\n%s", diff)
	}
}

func TestAnEmptyBodyIsAnAgree(t *testing.T) {
	m := newMarket(t)
	msg := m.filled(sample{protocol.Agree, protocol.ProtocolRequest, message.BalanceQuery{}})
	msg.Body = nil
	b, err := codec.Encode(msg)
	must(t, err)
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
	if diff := cmp.Diff(msg, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestLocalMessagesStayHere(t *testing.T) {
	m := newMarket(t)
	body := m.filled(samples()[0])
	body.Body = message.Reserve{ID: "r1"}
	receiver := m.filled(samples()[0])
	receiver.Receivers = []protocol.AgentID{protocol.LocalQueue}
	for _, msg := range []protocol.Message{body, receiver} {
		if _, err := codec.Encode(msg); !errors.Is(err, codec.ErrLocal) {
			t.Errorf("%v to %v: got %v, want ErrLocal", msg.Body, msg.Receivers, err)
		}
		if _, err := codec.EncodeTrace(msg); !errors.Is(err, codec.ErrLocal) {
			t.Errorf("trace: got %v, want ErrLocal", err)
		}
	}
}

func TestTextsForPeopleAreCleaned(t *testing.T) {
	m := newMarket(t)
	note := "sbatch: error\n\x1b[31mred\u009b\xff" + strings.Repeat("é", protocol.MaxWords)
	msg := m.filled(samples()[3])
	msg.Body = message.Refused(protocol.CodeBusy, note)
	b, err := codec.Encode(msg)
	must(t, err)
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
	must(t, err)
	clean := got.Body.(message.Refusal).Reasons[0].Note
	if !strings.HasPrefix(clean, "sbatch: error  [31mred é") || len(clean) > protocol.MaxWords {
		t.Errorf("got %q", clean)
	}
}

func TestRandomProposalsSurvive(t *testing.T) {
	m := newMarket(t)
	o := codec.Opener{Trust: m.trust}
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(0, rapid.Int64Range(1, 7258118400e9-1).Draw(t, "ns")).UTC()
	})
	reason := rapid.Custom(func(t *rapid.T) protocol.Reason {
		return protocol.Reason{
			Code: protocol.CodePrice, Unit: rapid.IntRange(-1, protocol.MaxUnits-1).Draw(t, "unit"),
			Asks:  protocol.Credits(rapid.Int64Min(0).Draw(t, "asks")),
			Start: rapid.OneOf(rapid.Just(time.Time{}), instant).Draw(t, "start"),
			Free:  rapid.IntRange(0, 1<<31-1).Draw(t, "free"),
			Note:  strings.ToValidUTF8(rapid.StringOf(rapid.RuneFrom([]rune("aé\"中 "))).Draw(t, "note"), ""),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := message.Proposal{Round: rapid.IntRange(0, protocol.MaxRounds).Draw(t, "round")}
		if list := rapid.SliceOfN(reason, 0, 4).Draw(t, "reasons"); len(list) > 0 {
			p.Refusals = list
		}
		for range rapid.IntRange(0, 3).Draw(t, "offers") {
			p.Offers = append(p.Offers, drawOffer(t, instant))
		}
		msg := m.filled(samples()[2])
		msg.Body = p
		b, err := codec.Encode(msg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.Open(b, m.seller.ID, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(msg, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// drawOffer draws an offer with costs of at most protocol.Cost.
func drawOffer(t *rapid.T, instant *rapid.Generator[time.Time]) protocol.Offer {
	o := protocol.Offer{ID: rapid.StringMatching(`[!#-'*-\[\]-~]{1,128}`).Draw(t, "id"), ValidUntil: instant.Draw(t, "valid until"),
		Queued: protocol.Odds(rapid.Uint32Range(0, uint32(protocol.MaxOdds)).Draw(t, "queued"))}
	units := rapid.SliceOfNDistinct(rapid.IntRange(0, protocol.MaxUnits-1), 1, 4, rapid.ID).Draw(t, "units")
	for _, u := range units {
		from := rapid.Int64Range(1, 7e18).Draw(t, "start")
		x := protocol.Item{Unit: u, Price: protocol.Credits(rapid.Int64Range(1, 1e9).Draw(t, "price")), Slot: protocol.Slot{
			Start: time.Unix(0, from).UTC(), End: time.Unix(0, from).Add(time.Duration(rapid.Int64Range(3600e9, 1e15).Draw(t, "wall"))).UTC(),
			Cores: rapid.IntRange(1, 1e6).Draw(t, "cores"),
		}}
		most, err := protocol.Cost(x.Price, x.Slot.Cores, x.Slot.Wall())
		if err != nil || most > 1<<60 {
			t.Skip("more money than there is")
		}
		x.Cost = protocol.Credits(rapid.Int64Range(1, int64(most)).Draw(t, "cost"))
		o.Items, o.Cost = append(o.Items, x), o.Cost+x.Cost
	}
	return o
}

// Readdress gives what Encode writes for the other receiver, and refuses what is none.
func TestReaddress(t *testing.T) {
	m := newMarket(t)
	for name, msg := range auctionMessages(m) {
		for _, to := range []protocol.AgentID{m.user.ID, m.seller.ID, m.bank.ID} {
			raw, err := codec.Encode(msg)
			must(t, err)
			other := msg
			other.Receivers = []protocol.AgentID{to}
			want, err := codec.Encode(other)
			must(t, err)
			if got, err := codec.Readdress(raw, to); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s to %s: %x, %v; want %x", name, to, got, err, want)
			}
		}
		raw, err := codec.Encode(msg)
		must(t, err)
		if _, err := codec.Readdress(raw, ".bank"); err == nil {
			t.Error("a local receiver was accepted")
		}
		if _, err := codec.Readdress(raw[:2], m.bank.ID); err == nil {
			t.Error("half a message was accepted")
		}
	}
}
