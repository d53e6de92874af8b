package contract_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// encoding/json is the oracle: what is written by hand are its bytes, and what is
// read by hand is what it reads.
func TestBundlesAreWrittenAndReadAsEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBundle(t)
		want, err := contract.EncodeSlowly(b)
		if err != nil {
			t.Fatal(err)
		}
		octets, ok := contract.EncodeQuickly(b)
		if !ok || !bytes.Equal(octets, want) {
			t.Fatalf("written %v as\n%s, want\n%s", ok, octets, want)
		}
		if !contract.Quickly(octets) {
			t.Fatalf("not read quickly: %s", octets)
		}
		sameRead(t, octets)
	})
}

// Bundles that the rules refuse are written and read alike as well, where they are
// written by hand at all.
func TestOddBundlesAreLeftToEncodingJSON(t *testing.T) {
	for _, c := range []struct {
		name  string
		quick bool
		bend  func(b *protocol.Bundle)
	}{
		{"nothing odd", true, func(*protocol.Bundle) {}},
		{"a quote in a name", false, func(b *protocol.Bundle) { b.Conversation = `a"b` }},
		{"a backslash", false, func(b *protocol.Bundle) { b.Units[0].Reservation = `a\b` }},
		{"a line break", false, func(b *protocol.Bundle) { b.RFQ = "a\nb" }},
		{"a name that is no ASCII", false, func(b *protocol.Bundle) { b.User = "ü" }},
		{"bytes that are not UTF-8", false, func(b *protocol.Bundle) { b.Bank = "\xff" }},
		{"a character that browsers would mind", true, func(b *protocol.Bundle) { b.Nonce = "<&>" }},
		{"no unit", false, func(b *protocol.Bundle) { b.Units = nil }},
		{"an empty list of units", false, func(b *protocol.Bundle) { b.Units = []protocol.BundleUnit{} }},
		{"a tariff", false, func(b *protocol.Bundle) { b.Units[1].Tariff.TimeLimit = time.Hour }},
		{"negative figures", true, func(b *protocol.Bundle) { b.Version, b.Units[0].Cost, b.Total = -1, -1, -15*protocol.Credit/10 }},
		{"a time elsewhere", false, func(b *protocol.Bundle) { b.SettleBy = b.SettleBy.In(time.FixedZone("", 3600)) }},
		{"no time", false, func(b *protocol.Bundle) { b.SettleBy = time.Time{} }},
		{"a year of five digits", false, func(b *protocol.Bundle) { b.Units[0].Slot.End = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := plain()
			c.bend(&b)
			octets, ok := contract.EncodeQuickly(b)
			want, err := contract.EncodeSlowly(b)
			if ok != c.quick || ok && (err != nil || !bytes.Equal(octets, want)) {
				t.Fatalf("written by hand %v, as\n%s, want\n%s, %v", ok, octets, want, err)
			}
			if err == nil {
				sameRead(t, want)
			}
		})
	}
}

// sameRead holds that octets are one bundle, or none, however they are read.
func sameRead(t interface {
	Fatalf(format string, args ...any)
}, octets []byte) {
	got, err := contract.Decode(octets)
	want, wantErr := contract.DecodeSlowly(octets)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("%s is read with %v, want %v", octets, err, wantErr)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%s is read otherwise:\n%s", octets, d)
	}
}

func TestBundlesOfTheGreatestSizeAreReadQuickly(t *testing.T) {
	octets, err := contract.Encode(large(protocol.MaxUnits))
	must(t, err)
	if !contract.Quickly(octets) || contract.Quickly(append(octets, strings.Repeat(" ", contract.MaxOctets)...)) {
		t.Fatal("read quickly: want the greatest bundle, and not what is above the bound")
	}
	sameRead(t, octets)
}

func FuzzQuickBundle(f *testing.F) {
	f.Add([]byte(plainOctets))
	for _, change := range []string{`"version":1|"version":01`, `13:00:00Z|13:00:00.500Z`, `13:00:00Z|13:00:00+00:00`, `"user":"|"user":"\u0061`, `}}|},"tariff":{}}`, `.5|.50`} {
		from, to, _ := strings.Cut(change, "|")
		f.Add([]byte(strings.Replace(plainOctets, from, to, 1)))
	}
	f.Fuzz(func(t *testing.T, octets []byte) { sameRead(t, octets) })
}
