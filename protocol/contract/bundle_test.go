package contract_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/contract"
)

const (
	annID  = "ann@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	bobID  = "bob@bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	caroID = "caro@cccccccccccccccccccccccccccccccc"
	bankID = "bank@dddddddddddddddddddddddddddddddd"
)

// plain is a bundle of two units that cost 4 and 1.25 credits.
func plain() protocol.Bundle {
	start := now.Add(time.Hour)
	return protocol.Bundle{
		Version: 1, Conversation: "c-1<&>", User: annID, Bank: bankID, Currency: "RMP",
		Mode: protocol.ModeOnReservation, RFQ: strings.Repeat("ab", 32),
		Units: []protocol.BundleUnit{
			{Unit: 0, Seller: bobID, Reservation: "r1", Slot: protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 8}, Price: 500_000, Cost: 4_000_000},
			{Unit: 3, Seller: caroID, Reservation: "r1", Slot: protocol.Slot{Start: start, End: start.Add(1500 * time.Millisecond), Cores: 3000}, Price: 1_000_000, Cost: 1_250_000},
		},
		Total: 5_250_000, Nonce: "0123456789abcdef", SettleBy: now.Add(30 * time.Second),
	}
}

const plainOctets = `{"version":1,"conversation":"c-1<&>","user":"ann@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",` +
	`"bank":"bank@dddddddddddddddddddddddddddddddd","currency":"RMP","mode":"on-reservation",` +
	`"rfq_sha256":"abababababababababababababababababababababababababababababababab","units":[` +
	`{"unit":0,"seller":"bob@bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","reservation":"r1",` +
	`"slot":{"start":"2026-08-01T13:00:00Z","end":"2026-08-01T14:00:00Z","cores":8},"price_core_hour":0.5,"cost":4},` +
	`{"unit":3,"seller":"caro@cccccccccccccccccccccccccccccccc","reservation":"r1",` +
	`"slot":{"start":"2026-08-01T13:00:00Z","end":"2026-08-01T13:00:01.5Z","cores":3000},"price_core_hour":1,"cost":1.25}],` +
	`"total":5.25,"nonce":"0123456789abcdef","settle_by":"2026-08-01T12:00:30Z"}`

// A change of these octets changes the identity of every contract ever signed.
func TestCanonicalOctetsAndIDAreFixed(t *testing.T) {
	octets, err := contract.Encode(plain())
	must(t, err)
	if string(octets) != plainOctets {
		t.Errorf("octets\n%s\nwant\n%s", octets, plainOctets)
	}
	sum := sha256.Sum256([]byte(plainOctets))
	if id := contract.ID(octets); string(id) != hex.EncodeToString(sum[:]) {
		t.Errorf("contract %s", id)
	}
}

func TestTimesAreWrittenInUTC(t *testing.T) {
	b := plain()
	east := time.FixedZone("east", 7200)
	b.SettleBy = b.SettleBy.In(east)
	for i := range b.Units {
		b.Units[i].Slot.Start, b.Units[i].Slot.End = b.Units[i].Slot.Start.In(east), b.Units[i].Slot.End.In(east)
	}
	octets, err := contract.Encode(b)
	must(t, err)
	if string(octets) != plainOctets {
		t.Errorf("octets %s", octets)
	}
	if b.Units[0].Slot.Start.Location() != east {
		t.Error("the caller's bundle was changed")
	}
}

func TestTermsThatAreNotAllowed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*protocol.Bundle)
	}{
		{"another version", func(b *protocol.Bundle) { b.Version = 2 }},
		{"no conversation", func(b *protocol.Bundle) { b.Conversation = "" }},
		{"a long conversation", func(b *protocol.Bundle) { b.Conversation = strings.Repeat("c", protocol.MaxConversation+1) }},
		{"a conversation with a space", func(b *protocol.Bundle) { b.Conversation = "a b" }},
		{"a conversation with a quote", func(b *protocol.Bundle) { b.Conversation = `a"b` }},
		{"a conversation with a line end", func(b *protocol.Bundle) { b.Conversation = "a\nb" }},
		{"a conversation beyond ASCII", func(b *protocol.Bundle) { b.Conversation = "ä" }},
		{"no user", func(b *protocol.Bundle) { b.User = "" }},
		{"a local correspondent as user", func(b *protocol.Bundle) { b.User = protocol.LocalControl }},
		{"a bank without a key", func(b *protocol.Bundle) { b.Bank = "bank" }},
		{"a currency of two letters", func(b *protocol.Bundle) { b.Currency = "RM" }},
		{"a currency of nine letters", func(b *protocol.Bundle) { b.Currency = "RAMPRAMPR" }},
		{"a currency in lower case", func(b *protocol.Bundle) { b.Currency = "rmp" }},
		{"an unknown mode", func(b *protocol.Bundle) { b.Mode = "later" }},
		{"a short RFQ hash", func(b *protocol.Bundle) { b.RFQ = b.RFQ[:62] }},
		{"an RFQ hash in upper case", func(b *protocol.Bundle) { b.RFQ = strings.ToUpper(b.RFQ) }},
		{"a short nonce", func(b *protocol.Bundle) { b.Nonce = b.Nonce[:15] }},
		{"a long nonce", func(b *protocol.Bundle) { b.Nonce = strings.Repeat("0", 65) }},
		{"no settle-by", func(b *protocol.Bundle) { b.SettleBy = time.Time{} }},
		{"settle-by at a start", func(b *protocol.Bundle) { b.SettleBy = b.Units[1].Slot.Start }},
		{"settle-by before time is counted", func(b *protocol.Bundle) { b.SettleBy = b.SettleBy.AddDate(-100, 0, 0) }},
		{"no units", func(b *protocol.Bundle) { b.Units, b.Total = nil, 0 }},
		{"one unit too many", func(b *protocol.Bundle) { *b = large(protocol.MaxUnits + 1) }},
		{"a unit twice", func(b *protocol.Bundle) { b.Units[1].Unit = 0 }},
		{"units out of order", func(b *protocol.Bundle) { b.Units[0], b.Units[1] = b.Units[1], b.Units[0] }},
		{"a negative unit", func(b *protocol.Bundle) { b.Units[0].Unit = -1 }},
		{"a unit beyond the document", func(b *protocol.Bundle) { b.Units[1].Unit = protocol.MaxUnits }},
		{"a reservation of one seller twice", func(b *protocol.Bundle) { b.Units[1].Seller = bobID }},
		{"a seller without a key", func(b *protocol.Bundle) { b.Units[0].Seller = "bob" }},
		{"no reservation", func(b *protocol.Bundle) { b.Units[0].Reservation = "" }},
		{"a long reservation", func(b *protocol.Bundle) { b.Units[0].Reservation = strings.Repeat("r", contract.MaxReservation+1) }},
		{"no cores", func(b *protocol.Bundle) { b.Units[0].Slot.Cores = 0 }},
		{"an end at its start", func(b *protocol.Bundle) { b.Units[0].Slot.End = b.Units[0].Slot.Start }},
		{"a slot of thousand years", func(b *protocol.Bundle) { b.Units[0].Slot.End = now.AddDate(1000, 0, 0) }},
		{"price zero", func(b *protocol.Bundle) { b.Units[0].Price = 0 }},
		{"a negative price", func(b *protocol.Bundle) { b.Units[0].Price = -1 }},
		{"a price that overflows", func(b *protocol.Bundle) { b.Units[0].Price = math.MaxInt64; b.Units[0].Slot.Cores = protocol.MaxCores }},
		{"cost zero", func(b *protocol.Bundle) { b.Units[0].Cost, b.Total = 0, b.Units[1].Cost }},
		{"a negative cost", func(b *protocol.Bundle) { b.Units[0].Cost, b.Total = -1, b.Units[1].Cost-1 }},
		{"a cost above the price", func(b *protocol.Bundle) { b.Units[0].Cost++; b.Total++ }},
		{"a total above the sum", func(b *protocol.Bundle) { b.Total++ }},
		{"a total below the sum", func(b *protocol.Bundle) { b.Total-- }},
		{"a total that overflows", func(b *protocol.Bundle) {
			for i := range b.Units {
				b.Units[i].Slot = protocol.Slot{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Cores: 1}
				b.Units[i].Price, b.Units[i].Cost = math.MaxInt64, math.MaxInt64
			}
			b.Total = -2
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := plain()
			tc.change(&b)
			if _, err := contract.Encode(b); !errors.Is(err, contract.ErrTerms) {
				t.Errorf("encoding: %v, want terms that are not allowed", err)
			}
			// The same holds for the output of another program with the same form.
			octets, err := json.Marshal(b)
			must(t, err)
			if _, err := contract.Decode(octets); err == nil {
				t.Error("decoded")
			}
		})
	}
}

// large is a bundle of n units with the longest names that are allowed.
func large(n int) protocol.Bundle {
	b := plain()
	unit := b.Units[0]
	b.Conversation = strings.Repeat("c", protocol.MaxConversation)
	b.Units, b.Total = nil, 0
	for i := range n {
		unit.Unit, unit.Reservation = i, strings.Repeat("r", contract.MaxReservation-3)+fmt.Sprintf("%03d", i)
		unit.Seller = protocol.AgentID(strings.Repeat("s", 63) + "@" + strings.Repeat("a", 32))
		unit.Slot.End = unit.Slot.Start.Add(time.Hour - 1)
		unit.Cost = unit.Price * 8 / 3
		b.Units, b.Total = append(b.Units, unit), b.Total+unit.Cost
	}
	return b
}

func TestGreatestBundleFits(t *testing.T) {
	octets, err := contract.Encode(large(protocol.MaxUnits))
	must(t, err)
	if len(octets) > contract.MaxOctets/2 {
		t.Errorf("%d bytes", len(octets))
	}
	_, err = contract.Decode(octets)
	must(t, err)
}

func TestLowerCostThanThePriceIsAllowed(t *testing.T) {
	b := plain()
	b.Units[0].Cost--
	b.Total--
	octets, err := contract.Encode(b)
	must(t, err)
	_, err = contract.Decode(octets)
	must(t, err)
}

func TestOtherFormsOfTheSameBundleAreRefused(t *testing.T) {
	replace := func(old, with string) string {
		if !strings.Contains(plainOctets, old) {
			t.Fatalf("the octets have no %s", old)
		}
		return strings.Replace(plainOctets, old, with, 1)
	}
	for _, tc := range []struct{ name, octets string }{
		{"nothing", ""},
		{"null", "null"},
		{"a list", "[" + plainOctets + "]"},
		{"a space at the end", plainOctets + " "},
		{"a line end at the end", plainOctets + "\n"},
		{"bytes after the end", plainOctets + "x"},
		{"two documents", plainOctets + plainOctets},
		{"a byte order mark", "\ufeff" + plainOctets},
		{"a space within", replace(`"version":1`, `"version": 1`)},
		{"fields in another order", replace(`"version":1,"conversation":"c-1<&>"`, `"conversation":"c-1<&>","version":1`)},
		{"a field twice", replace(`"version":1`, `"version":1,"version":1`)},
		{"an unknown field", replace(`"version":1`, `"version":1,"note":""`)},
		{"a field in upper case", replace(`"version":1`, `"Version":1`)},
		{"a missing field", replace(`"version":1,`, ``)},
		{"an escaped character", replace(`c-1<&>`, `c-1\u003c&>`)},
		{"a number with a fraction", replace(`"version":1`, `"version":1.0`)},
		{"a number with an exponent", replace(`"cores":8`, `"cores":8e0`)},
		{"an amount with an exponent", replace(`"total":5.25`, `"total":525e-2`)},
		{"an amount with a zero at the end", replace(`"total":5.25`, `"total":5.250`)},
		{"an amount with a zero in front", replace(`"total":5.25`, `"total":05.25`)},
		{"a quoted amount", replace(`"total":5.25`, `"total":"5.25"`)},
		{"a time with a zone", replace(`"2026-08-01T12:00:30Z"`, `"2026-08-01T14:00:30+02:00"`)},
		{"a time with zone zero", replace(`"2026-08-01T12:00:30Z"`, `"2026-08-01T12:00:30+00:00"`)},
		{"a time with a fraction of zero", replace(`"2026-08-01T12:00:30Z"`, `"2026-08-01T12:00:30.0Z"`)},
		{"a time below the nanosecond", replace(`"2026-08-01T12:00:30Z"`, `"2026-08-01T12:00:30.1234567891Z"`)},
		{"too many bytes", strings.Repeat(" ", contract.MaxOctets) + plainOctets},
		{"deep nesting", strings.Repeat(`[`, 200_000)},
		{"no UTF-8", replace(`c-1`, "c\xff1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if b, err := contract.Decode([]byte(tc.octets)); err == nil {
				t.Errorf("decoded %+v", b)
			}
		})
	}
}

// drawBundle draws any bundle that the rules allow.
func drawBundle(t *rapid.T) protocol.Bundle {
	b := plain()
	b.Conversation = rapid.StringMatching(`[!#-'*-\[\]-~]{1,128}`).Draw(t, "conversation")
	b.Currency = rapid.StringMatching(`[A-Z]{3,8}`).Draw(t, "currency")
	b.Nonce = rapid.StringMatching(`[0-9a-f]{16,64}`).Draw(t, "nonce")
	b.Units, b.Total = nil, 0
	for i := range rapid.IntRange(1, 12).Draw(t, "units") {
		start := b.SettleBy.Add(time.Duration(rapid.Int64Range(1, 1e17).Draw(t, "start")))
		u := protocol.BundleUnit{
			Unit: i * rapid.IntRange(1, 20).Draw(t, "gap"), Seller: rapid.SampledFrom([]protocol.AgentID{bobID, caroID}).Draw(t, "seller"),
			Reservation: fmt.Sprint("r", i), Price: protocol.Credits(rapid.Int64Range(1, 1e9).Draw(t, "price")),
			Slot: protocol.Slot{Start: start, End: start.Add(time.Duration(rapid.Int64Range(1e9, 1e15).Draw(t, "wall"))), Cores: rapid.IntRange(1, 5000).Draw(t, "cores")},
		}
		u.Slot.Nodes = rapid.SampledFrom([]int{0, 1, u.Slot.Cores}).Draw(t, "nodes")
		if n := len(b.Units); n > 0 && u.Unit <= b.Units[n-1].Unit {
			u.Unit = b.Units[n-1].Unit + 1
		}
		most, err := protocol.Cost(u.Price, u.Slot.Cores, u.Slot.Wall())
		if err != nil || most == 0 {
			t.Skip("costs nothing")
		}
		u.Cost = protocol.Credits(rapid.Int64Range(1, int64(most)).Draw(t, "cost"))
		b.Units, b.Total = append(b.Units, u), b.Total+u.Cost
	}
	return b
}

func TestBundlesSurviveTheRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBundle(t)
		octets, err := contract.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := contract.Decode(octets)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b, got); d != "" {
			t.Fatal(d)
		}
		if want := library(b); !bytes.Equal(octets, want) {
			t.Fatalf("written %s, by encoding/json %s", octets, want)
		}
	})
}

// library writes a bundle with encoding/json.
func library(b protocol.Bundle) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(b) != nil {
		return nil
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// One octet more, less or other is another contract or none.
func TestEveryChangeOfOctetsIsSeen(t *testing.T) {
	want, err := contract.Decode([]byte(plainOctets))
	must(t, err)
	rapid.Check(t, func(t *rapid.T) {
		octets := []byte(plainOctets)
		i := rapid.IntRange(0, len(octets)-1).Draw(t, "at")
		octets[i] = rapid.Byte().Draw(t, "octet")
		got, err := contract.Decode(octets)
		if err == nil && cmp.Equal(got, want) != bytes.Equal(octets, []byte(plainOctets)) {
			t.Fatalf("%s is read as the same bundle", octets)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(plainOctets))
	f.Add([]byte(strings.Replace(plainOctets, "13:00:00Z", "13:00:00.000000001Z", 1)))
	f.Add([]byte(strings.Replace(plainOctets, "{", `{"version":1,`, 1)))
	f.Add([]byte(strings.Replace(plainOctets, `"cores":8`, `"cores":8,"nodes":2`, 1)))
	for old, odd := range map[string]string{`"cores":8`: `"cores":08`, `"cost":4`: `"cost":4.0`, `:30Z`: `:30+00:00`, "<&>": "\u007f\u2028", "RMP": "R\xffP", `}]`: `},{"unit":4}]`, `"r1"`: `"r\u0031"`} {
		f.Add([]byte(strings.Replace(plainOctets, old, odd, 1)))
	}
	odd := metered()
	odd.Units[0].Reservation = "<&>/~"
	octets, err := contract.Encode(odd)
	must(f, err)
	f.Add(octets)
	f.Fuzz(func(t *testing.T, octets []byte) {
		b, err := contract.Decode(octets)
		var want protocol.Bundle // as encoding/json reads it
		wantErr := json.Unmarshal(octets, &want)
		_, canonical := contract.Encode(want)
		again := library(want)
		good := wantErr == nil && canonical == nil && bytes.Equal(again, octets)
		if (err == nil) != good || good && !cmp.Equal(b, want) {
			t.Errorf("%s is read as %+v, %v; want %+v, %v, %v, written %s", octets, b, err, want, wantErr, canonical, again)
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	octets, err := contract.Encode(plain())
	must(b, err)
	b.Run("encode two units", func(b *testing.B) {
		for b.Loop() {
			if _, err := contract.Encode(plain()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode two units", func(b *testing.B) {
		for b.Loop() {
			if _, err := contract.Decode(octets); err != nil {
				b.Fatal(err)
			}
		}
	})
}
