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

// Each value and each list of each of the messages is made another one, good or bad.
func TestQuickReadingAndWritingIsTheLibrarysForEveryField(t *testing.T) {
	m := newMarket(t)
	for _, s := range quickSamples() {
		for i, was := range newForm(m, s).places() {
			for n := range alternatives(was) {
				f := newForm(m, s)
				v := f.places()[i]
				v.Set(alternatives(v)[n])
				checkBoth(t, m, f.message())
			}
		}
	}
}

func TestQuickReadingAndWritingIsTheLibrarysForSeveralChanges(t *testing.T) {
	m := newMarket(t)
	list := quickSamples()
	rapid.Check(t, func(t *rapid.T) {
		f := newForm(m, rapid.SampledFrom(list).Draw(t, "sample"))
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			v := rapid.SampledFrom(f.places()).Draw(t, "place")
			v.Set(rapid.SampledFrom(alternatives(v)).Draw(t, "value"))
		}
		checkBoth(t, m, f.message())
	})
}

// checkBoth writes a message, and reads it as somebody would write it who checks
// nothing.
func checkBoth(t fataler, m *market, msg protocol.Message) {
	got, ok := codec.WriteQuick(msg)
	want, err := codec.WriteSlowly(msg)
	if ok != (err == nil) || ok && !bytes.Equal(got, want) {
		t.Fatalf("%+v gives %x, %v; want %x, %v", msg, got, ok, want, err)
	}
	b, err := codec.WriteUnchecked(msg)
	if err != nil || len(b) > codec.Quickest {
		return // for a local correspondent, or not read quickly
	}
	if _, err := codec.NewOpener(m.trust, 1).OpenSlowly(b, now); checkQuick(t, m, b) != (err == nil) {
		t.Fatalf("%x of %+v was left to the library, which says %v", b, msg, err)
	}
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

// form is a message whose values can be changed.
type form struct {
	msg  protocol.Message
	body reflect.Value
}

func newForm(m *market, s sample) *form {
	f := &form{msg: m.filled(s)}
	f.body = reflect.New(reflect.TypeOf(f.msg.Body)).Elem()
	f.body.Set(reflect.ValueOf(f.msg.Body))
	return f
}

func (f *form) places() []reflect.Value {
	return places(f.body, places(reflect.ValueOf(&f.msg).Elem(), nil))
}

func (f *form) message() protocol.Message {
	f.msg.Body = f.body.Interface().(protocol.Body)
	return f.msg
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
	case reflect.Pointer:
		if !v.IsNil() {
			found = places(v.Elem(), found)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				found = places(v.Index(i), found)
			}
		}
	}
	return append(found, v)
}

// alternatives are what a value can be made: at the bounds, beyond them, and odd.
func alternatives(v reflect.Value) []reflect.Value {
	if _, ok := v.Interface().(time.Time); ok {
		return of(v,
			time.Time{}, time.Unix(0, 0), time.Unix(0, 1), time.Unix(-1, 0), now, now.Add(time.Hour), now.In(time.FixedZone("east", 3600)),
			time.Date(2199, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	switch v.Kind() {
	case reflect.Bool:
		return of(v, true, false)
	case reflect.Float64:
		return of(v, -1.0, 0.0, 0.5, 1.0, math.Inf(1), math.NaN())
	case reflect.String:
		return of(v,
			"", "x", "a b", "a\nb", "é", "\xff", "\u0085", `"`, "cfp", "propose", "refuse", "failure", protocol.ProtocolAuction, protocol.ProtocolCommit,
			".queue", "*", "bank@"+strings.Repeat("b", protocol.FingerprintLen), "CUR", "price", string(protocol.ModeMetered),
			strings.Repeat("long ", 60), strings.Repeat("é", protocol.MaxWords/2)+"é", strings.Repeat("n", 80))
	case reflect.Uint32:
		return of(v, 0, 1, protocol.MaxOdds, protocol.MaxOdds+1, uint32(math.MaxUint32))
	case reflect.Slice:
		return otherLists(v)
	case reflect.Pointer:
		return []reflect.Value{reflect.Zero(v.Type()), reflect.New(v.Type().Elem())}
	}
	return of(v, -2, -1, 0, 1, 2, 3, 100, 101, 255, 256, protocol.MaxCores, protocol.MaxCores+1, math.MaxInt32, math.MaxInt32+1, math.MaxInt64, math.MinInt64)
}

// of are values of the type of v.
func of(v reflect.Value, values ...any) []reflect.Value {
	out := make([]reflect.Value, len(values))
	for i, x := range values {
		out[i] = reflect.ValueOf(x).Convert(v.Type())
	}
	return out
}

// otherLists are shorter than v, or repeat it.
func otherLists(v reflect.Value) []reflect.Value {
	lengths := []int{0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 64, 65, 200, 256, 257, 512, 513, 1024, 1025, protocol.MaxSpans, protocol.MaxSpans + 1}
	out := make([]reflect.Value, len(lengths))
	for k, n := range lengths {
		out[k] = reflect.MakeSlice(v.Type(), n, n)
		for i := 0; i < n && v.Len() > 0; i++ {
			out[k].Index(i).Set(v.Index(i % v.Len()))
		}
	}
	return out
}
