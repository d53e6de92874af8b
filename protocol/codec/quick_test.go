package codec_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
)

// The library reads and writes what is read and written here without it: it is
// the oracle of both directions.

func TestQuickWritingGivesTheBytesOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEnvelope(t)
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(e)
		got, quickErr := codec.Marshal(e)
		if err != nil || quickErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v gives %x, %v; want %x, %v", e, got, quickErr, want, err)
		}
	})
}

func TestQuickReadingTakesWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(drawEnvelope(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > codec.Quickest {
			t.Skip("too long to be read quickly")
		}
		if !checkQuick(t, b) {
			t.Fatalf("%x was left to the library", b)
		}
	})
}

func TestQuickReadingLeavesToTheLibraryWhatIsStrange(t *testing.T) {
	text := func(num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), s)
	}
	for name, b := range map[string][]byte{
		"a field twice":              append(text(3, "a"), text(3, "b")...),
		"fields in another order":    append(text(3, "a"), text(1, "b")...),
		"an unknown field":           text(15, "later"),
		"an unknown body":            text(40, ""),
		"another body":               text(16, ""),
		"two bodies":                 append(text(17, ""), text(18, "")...),
		"the same body twice":        append(text(17, ""), text(17, "\x08\x01")...),
		"a text that is not UTF-8":   text(3, "\xff"),
		"a part that is cut":         {0x8a, 0x01, 5, 8},
		"a number in place of text":  {0x18, 1},
		"text in place of a number":  text(17, "\x0a\x00"),
		"an unknown field of a part": text(19, "\x78\x01"),
		"a list that is not packed":  text(17, "\x22\x02\x08\x01"),
		"a length beyond the end":    {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"a long message":             text(3, string(make([]byte, codec.Quickest))),
	} {
		if _, ok := codec.ReadQuick(b); ok {
			t.Errorf("%s: %x was read quickly", name, b)
		}
	}
}

// A call of before there were budgets asks everybody: without one, its bytes are
// the same as then.
func TestACallWithoutABudgetIsAsItWas(t *testing.T) {
	e := &wire.Envelope{Performative: "cfp", Body: &wire.Envelope_Cfp{Cfp: &wire.CallForProposals{Round: 2, Best: true}}}
	was := append([]byte("\x0a\x03cfp"), 0x8a, 0x01, 4, 0x08, 2, 0x40, 1)
	if b, err := codec.Marshal(e); err != nil || !bytes.Equal(b, was) {
		t.Fatalf("%x, %v; want %x", b, err, was)
	}
	got, ok := codec.ReadQuick(was)
	if c := got.GetCfp(); !ok || c.Budget != 0 || c.Among != 0 || !c.Best {
		t.Fatalf("%x read as %v", was, got)
	}
}

// Whatever is read quickly is what the library reads.
func FuzzReadQuick(f *testing.F) {
	m := newMarket(f)
	for _, s := range samples() {
		b, err := codec.Encode(m.filled(s))
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkQuick(t, b) })
}

func checkQuick(t fataler, b []byte) (taken bool) {
	got, ok := codec.ReadQuick(b)
	if !ok {
		return false
	}
	want := &wire.Envelope{}
	if err := proto.Unmarshal(b, want); err != nil {
		t.Fatalf("%x was read quickly, and the library says %v", b, err)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("%x read as %v, want %v", b, got, want)
	}
	return true
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// drawEnvelope is a message with any values in its fields, and one of the bodies
// that are read and written without the library.
func drawEnvelope(t *rapid.T) *wire.Envelope {
	e := &wire.Envelope{}
	fillDrawn(t, e.ProtoReflect())
	body := rapid.SampledFrom([]protoreflect.FullName{"cfp", "proposal", "refusal"}).Draw(t, "body")
	field := e.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(body))
	part := e.ProtoReflect().NewField(field)
	fillDrawn(t, part.Message())
	e.ProtoReflect().Set(field, part)
	return e
}

// fillDrawn sets the fields that are not alternatives.
func fillDrawn(t *rapid.T, m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		if field.ContainingOneof() != nil {
			continue
		}
		if !field.IsList() {
			m.Set(field, drawValue(t, m.NewField(field), field))
			continue
		}
		list := m.Mutable(field).List()
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list.Append(drawValue(t, list.NewElement(), field))
		}
	}
}

func drawValue(t *rapid.T, v protoreflect.Value, field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.MessageKind:
		fillDrawn(t, v.Message())
		return v
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.StringN(0, 40, 120).Draw(t, "text"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "truth"))
	}
	return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "number"))
}
