package protocol_test

import (
	"math"
	"testing"

	"ramp/protocol"
)

func TestAmountsForPeopleHaveTwoDecimals(t *testing.T) {
	t.Parallel()
	for in, want := range map[protocol.Credits]string{
		0: "0.00", protocol.Credit: "1.00", 1_234_567: "1.23", 1_235_000: "1.24", 500_000: "0.50", 5_000: "0.01", 4_999: "0.004999", 1: "0.000001",
		-1_235_000: "-1.24", -500_000: "-0.50", -1: "-0.000001", math.MaxInt64: "9223372036854.78", math.MinInt64: "-9223372036854.78",
	} {
		if got := in.Cents(); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}
