package protocol_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
)

func TestCostIsTheExactProductRoundedHalfAwayFromZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Int64Min(0).Draw(t, "price")
		cores := rapid.IntRange(0, protocol.MaxCores).Draw(t, "cores")
		wall := rapid.Int64Min(0).Draw(t, "wall")
		exact := new(big.Int).Mul(big.NewInt(price), big.NewInt(int64(cores)))
		exact.Mul(exact, big.NewInt(wall))
		exact.Add(exact, big.NewInt(int64(time.Hour)/2))
		exact.Quo(exact, big.NewInt(int64(time.Hour)))
		got, err := protocol.Cost(protocol.Credits(price), cores, time.Duration(wall))
		if !exact.IsInt64() {
			if err == nil {
				t.Fatalf("cost is %s, which does not fit, but got %d", exact, got)
			}
			return
		}
		if err != nil || int64(got) != exact.Int64() {
			t.Fatalf("got %d, %v; want %s", got, err, exact)
		}
	})
}

func TestCostRefusesNegatives(t *testing.T) {
	for name, f := range map[string]func() (protocol.Credits, error){
		"price": func() (protocol.Credits, error) { return protocol.Cost(-1, 1, time.Hour) },
		"cores": func() (protocol.Credits, error) { return protocol.Cost(1, -1, time.Hour) },
		"wall":  func() (protocol.Credits, error) { return protocol.Cost(1, 1, -time.Hour) },
	} {
		if c, err := f(); err == nil {
			t.Errorf("negative %s costs %s", name, c)
		}
	}
}

func TestCreditsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := protocol.Credits(rapid.Int64Min(-int64(protocol.MaxCredits)).Draw(t, "c"))
		got, err := protocol.ParseCredits(c.String())
		if err != nil || got != c {
			t.Fatalf("%d is written %q and read as %d, %v", int64(c), c, int64(got), err)
		}
	})
}

func TestCreditsAreRefused(t *testing.T) {
	for _, s := range []string{"", "-", ".", "1.", ".5", "1.0000001", "1e3", "+1", "--1", "1 ", "9223372036854.775808", "99999999999999999999", "0x10"} {
		if c, err := protocol.ParseCredits(s); err == nil {
			t.Errorf("%q is read as %s", s, c)
		}
	}
}

// What JSON writes shortly, as Python does, is as exact as any other number.
func TestCreditsMayHaveAnExponentInJSON(t *testing.T) {
	for text, want := range map[string]string{"5e-05": "0.00005", "1E3": "1000", "-1.25e+2": "-125", `"2e-6"`: "0.000002", "12.5": "12.5"} {
		var c protocol.Credits
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.String() != want {
			t.Errorf("%s is read as %s, %v; want %s", text, c, err, want)
		}
	}
	for _, text := range []string{"1e-7", "1e30", "1e999999999", `"0x1e1"`, `"1/3e1"`, `"e5"`, `"1e"`} {
		var c protocol.Credits
		if err := json.Unmarshal([]byte(text), &c); err == nil {
			t.Errorf("%s is read as %s", text, c)
		}
	}
}

func TestAddKnowsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		exact := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		got, err := protocol.Credits(a).Add(protocol.Credits(b))
		if (err == nil) != exact.IsInt64() || err == nil && int64(got) != exact.Int64() {
			t.Fatalf("%d + %d = %d, %v", a, b, got, err)
		}
	})
}

func TestAgentIDs(t *testing.T) {
	const fp = "abcdefghijklmnopqrstuvwxyz234567"
	for name, ok := range map[string]bool{
		"atlas1@" + fp: true, "a.b-c_d@" + fp: true, "1a@" + fp: false, "@" + fp: false, "a b@" + fp: false,
		"a@" + fp[1:]: false, "a@" + fp + "a": false, "a@" + "A" + fp[1:]: false, "a": false, ".queue": false,
	} {
		if err := protocol.AgentID(name).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestJoinKeepsTheEarlierAlarm(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range []struct{ a, b, want time.Time }{
		{time.Time{}, late, late}, {late, time.Time{}, late}, {early, late, early}, {late, early, early}, {time.Time{}, time.Time{}, time.Time{}},
	} {
		got := protocol.Output{WakeAt: c.a}.Join(protocol.Output{WakeAt: c.b}).WakeAt
		if !got.Equal(c.want) {
			t.Errorf("%v and %v make %v", c.a, c.b, got)
		}
	}
}
