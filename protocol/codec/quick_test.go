package codec_test

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// The generated code and the library read and write what is read and written here
// without them: they are the oracle of both directions.

// quickSamples are the messages that are read and written without the library.
func quickSamples() []sample {
	return slices.DeleteFunc(samples(), func(s sample) bool {
		return s.act != protocol.CFP && s.act != protocol.Propose && s.act != protocol.Refuse
	})
}

func TestQuickWritingGivesTheBytesOfTheLibraryOrLeavesItTheFault(t *testing.T) {
	m := newMarket(t)
	rapid.Check(t, func(t *rapid.T) {
		msg := drawSpoilt(t, m)
		got, ok := codec.WriteQuick(msg)
		want, err := codec.WriteSlowly(msg)
		if ok != (err == nil) || ok && !bytes.Equal(got, want) {
			t.Fatalf("%+v gives %x, %v; want %x, %v", msg, got, ok, want, err)
		}
	})
}

func TestQuickReadingTakesWhatWasWritten(t *testing.T) {
	m := newMarket(t)
	rapid.Check(t, func(t *rapid.T) {
		b, err := codec.WriteSlowly(drawSpoilt(t, m))
		if err != nil || len(b) > codec.Quickest {
			return // nothing to read, or not quickly
		}
		if !checkQuick(t, m, b) {
			t.Fatalf("%x was left to the library", b)
		}
	})
}

func TestQuickReadingOfDamagedBytesIsTheLibrarys(t *testing.T) {
	m := newMarket(t)
	list := quickSamples()
	rapid.Check(t, func(t *rapid.T) {
		b, err := codec.Encode(m.filled(rapid.SampledFrom(list).Draw(t, "sample")))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			with := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "with")
			b = slices.Concat(b[:at], with, b[min(len(b), at+rapid.IntRange(0, 3).Draw(t, "less")):])
			if len(b) == 0 {
				return
			}
		}
		checkQuick(t, m, b)
	})
}

func TestQuickReadingLeavesToTheLibraryWhatIsStrange(t *testing.T) {
	text := func(num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), s)
	}
	m := newMarket(t)
	good := protocol.Message{
		Performative: protocol.CFP, Receivers: []protocol.AgentID{m.seller.ID}, Protocol: protocol.ProtocolAuction, Conversation: "c",
		Body: message.CallForProposals{},
	}
	whole, err := codec.Encode(good)
	must(t, err)
	head := bytes.TrimSuffix(whole, text(17, ""))
	if _, ok := codec.ReadQuick(whole); !ok || len(head) == len(whole) {
		t.Fatalf("%x was not read quickly, or has no empty call at its end", whole)
	}
	with := func(parts ...[]byte) []byte { return slices.Concat(append([][]byte{head}, parts...)...) }
	for name, b := range map[string][]byte{
		"a field twice":              slices.Concat(text(1, "cfp"), head, text(17, "")),
		"fields in another order":    slices.Concat(text(17, ""), head),
		"an unknown field":           with(text(15, "later"), text(17, "")),
		"an unknown body":            with(text(40, "")),
		"another body":               with(text(16, "")),
		"no body":                    head,
		"two bodies":                 with(text(17, ""), text(18, "")),
		"the same body twice":        with(text(17, ""), text(17, "\x08\x01")),
		"a text that is not UTF-8":   with(text(8, "\xff"), text(17, "")),
		"a part that is cut":         with([]byte{0x8a, 0x01, 5, 8}),
		"a number in place of text":  with([]byte{0x40, 1}, text(17, "")),
		"text in place of a number":  with(text(17, "\x0a\x00")),
		"an unknown field of a part": with(text(17, "\x78\x01")),
		"a list that is not packed":  with(text(17, "\x22\x02\x08\x01")),
		"a length beyond the end":    with([]byte{0x8a, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
		"a long message":             with(text(17, string(text(2, string(make([]byte, codec.Quickest)))))),
	} {
		if _, ok := codec.ReadQuick(b); ok {
			t.Errorf("%s: %x was read quickly", name, b)
		}
	}
}

// A call of before there were budgets asks everybody: without one, its bytes are
// the same as then.
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

// Whatever is read quickly is what the library reads.
func FuzzReadQuick(f *testing.F) {
	m := newMarket(f)
	for _, s := range samples() {
		b, err := codec.Encode(m.filled(s))
		must(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkQuick(t, m, b) })
}

func checkQuick(t fataler, m *market, b []byte) (taken bool) {
	got, ok := codec.ReadQuick(b)
	if !ok {
		return false
	}
	got.Sender = "" // of a trace
	want, err := codec.NewOpener(m.trust, 1).OpenSlowly(b, now)
	if err != nil {
		t.Fatalf("%x was read quickly, and by way of the library %v", b, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%x read as %#v, want %#v", b, got, want)
	}
	return true
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// drawSpoilt is a message that is read and written without the library, in which
// some values are changed: most have a fault then, or a list of another length.
func drawSpoilt(t *rapid.T, m *market) protocol.Message {
	msg := m.filled(rapid.SampledFrom(quickSamples()).Draw(t, "sample"))
	body := reflect.New(reflect.TypeOf(msg.Body)).Elem()
	body.Set(reflect.ValueOf(msg.Body))
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		whole := places(reflect.ValueOf(&msg).Elem(), nil)
		whole = append(whole, places(body, nil)...)
		change(t, rapid.SampledFrom(whole).Draw(t, "place"))
	}
	msg.Body = body.Interface().(protocol.Body)
	return msg
}

// places are the values within v that can be changed, and the lists.
func places(v reflect.Value, found []reflect.Value) []reflect.Value {
	if _, ok := v.Interface().(time.Time); ok {
		return append(found, v)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Sender" {
				found = places(v.Field(i), found)
			}
		}
		return found
	case reflect.Interface:
		return found
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				found = places(v.Index(i), found)
			}
		}
	}
	return append(found, v)
}

func change(t *rapid.T, v reflect.Value) {
	if _, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(rapid.SampledFrom([]time.Time{
			{}, time.Unix(0, 0), time.Unix(0, 1), time.Unix(-1, 0), now, now.Add(time.Hour), now.In(time.FixedZone("east", 3600)),
			time.Date(2199, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
		}).Draw(t, "time")))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(rapid.Float64().Draw(t, "float"))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{
			"", "x", "a b", "a\nb", "é", "\xff", "\u0085", `"`, "cfp", "propose", "refuse", "failure", protocol.ProtocolAuction, protocol.ProtocolCommit,
			".queue", "*", "bank@" + strings.Repeat("b", protocol.FingerprintLen), "CUR", "price", string(protocol.ModeMetered),
			strings.Repeat("long ", 60), strings.Repeat("é", protocol.MaxWords/2) + "é", strings.Repeat("n", 80),
		}).Draw(t, "text"))
	case reflect.Uint32:
		v.SetUint(rapid.SampledFrom([]uint64{0, 1, uint64(protocol.MaxOdds), uint64(protocol.MaxOdds) + 1, math.MaxUint32}).Draw(t, "odds"))
	case reflect.Slice:
		changeList(t, v)
	default:
		v.SetInt(rapid.SampledFrom([]int64{
			-2, -1, 0, 1, 2, 3, 100, 101, 255, 256, protocol.MaxCores, protocol.MaxCores + 1, math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64,
		}).Draw(t, "number"))
	}
}

// changeList makes a list shorter, or repeats it.
func changeList(t *rapid.T, v reflect.Value) {
	n := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 64, 65, 200, 256, 257, 513}).Draw(t, "length")
	out := reflect.MakeSlice(v.Type(), n, n)
	for i := 0; i < n && v.Len() > 0; i++ {
		out.Index(i).Set(v.Index(i % v.Len()))
	}
	v.Set(out)
}
