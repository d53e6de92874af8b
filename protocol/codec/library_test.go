package codec_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// Messages are written and read by generated code without reflection. The protobuf
// library is its oracle.

func TestTheBytesAreTheLibrarys(t *testing.T) {
	m := newMarket(t)
	for _, s := range samples() {
		got, err := codec.Encode(m.filled(s))
		must(t, err)
		e := &wire.Envelope{}
		must(t, proto.Unmarshal(got, e))
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", s.act, got, want)
		}
	}
}

func TestWhatIsOpenedIsWhatTheLibraryReads(t *testing.T) {
	m := newMarket(t)
	list := samples()
	opener := codec.NewOpener(m.trust, 8)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(list).Draw(t, "sample")
		b, err := codec.Encode(m.filled(s))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 3).Draw(t, "damages") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			with := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "with")
			b = slices.Concat(b[:at], with, b[min(len(b), at+rapid.IntRange(0, 3).Draw(t, "less")):])
			if len(b) == 0 {
				return
			}
		}
		if _, err := opener.Open(b, m.user.ID, now); err != nil {
			return
		}
		readAsByTheLibrary(t, b)
	})
}

// readAsByTheLibrary checks the reading of bytes that were opened.
func readAsByTheLibrary(t rapid.TB, b []byte) {
	got := &wire.Envelope{}
	err := codec.Unmarshal(b, got)
	if err == nil && !utf8.ValidString(got.Sender) {
		return // Open does not look at it
	}
	want := &wire.Envelope{}
	if wrong := proto.Unmarshal(b, want); wrong != nil {
		// Of a text that comes twice, Open looks at the last one only.
		last, err := proto.Marshal(got)
		if err != nil || !strings.Contains(wrong.Error(), "invalid UTF-8") || proto.Unmarshal(last, want) != nil {
			t.Fatalf("%x was opened; the library says %v", b, wrong)
		}
	}
	if err != nil || !proto.Equal(got, want) {
		t.Fatalf("%x was read as %v, %v; want %v", b, got, err, want)
	}
}

// A call without a budget asks everybody, and has the bytes of versions without budgets.
func TestACallWithoutABudgetIsAsItWas(t *testing.T) {
	m := newMarket(t)
	msg := protocol.Message{
		Performative: protocol.CFP, Receivers: []protocol.AgentID{m.seller.ID}, Protocol: protocol.ProtocolAuction, Conversation: "c",
		Body: message.CallForProposals{Round: 2, Best: true},
	}
	was := []byte{0x8a, 0x01, 4, 0x08, 2, 0x40, 1}
	b, err := codec.Encode(msg)
	if err != nil || !bytes.HasSuffix(b, was) {
		t.Fatalf("%x, %v; want %x at the end", b, err, was)
	}
	got, err := codec.NewOpener(m.trust, 1).Open(b, m.user.ID, now)
	must(t, err)
	if c := got.Body.(message.CallForProposals); c.Budget != 0 || c.Among != 0 || !c.Best {
		t.Fatalf("%x read as %v", was, got)
	}
}
