package protocol_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol"
)

func TestOddsAreClampedAndRoundedDown(t *testing.T) {
	for p, want := range map[float64]string{-1: "0", 0: "0", 0.25: "0.25", 0.123456789: "0.123456", 1: "1", 7: "1"} {
		b, err := json.Marshal(protocol.OddsOf(p))
		if err != nil || string(b) != want {
			t.Errorf("%g is %s, %v; want %s", p, b, err, want)
		}
	}
	if s := protocol.OddsOf(0.999).String(); s != "99 %" {
		t.Errorf("0.999 is %q for people", s)
	}
	if s := protocol.Odds(0).String(); s != "-" {
		t.Errorf("unknown odds are %q", s)
	}
}

func TestOddsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := protocol.Odds(rapid.Uint32Range(0, uint32(protocol.MaxOdds)).Draw(t, "odds"))
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got protocol.Odds
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Fatalf("%s is %d, %v; want %d", b, got, err, want)
		}
	})
	for _, bad := range []string{"-0.1", "1.1", `"1"`, "NaN", "{}"} {
		var o protocol.Odds
		if json.Unmarshal([]byte(bad), &o) == nil {
			t.Errorf("%s is taken as %s", bad, o)
		}
	}
}
