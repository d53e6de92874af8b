package cli_test

import (
	"strings"
	"testing"
	"time"

	"ramp/cmd/ramp/cli"

	"ramp/agents/user"
	"ramp/protocol/message"
)

func TestAWaitThatIsLongSaysForWhatAndUntilWhen(t *testing.T) {
	for _, c := range []struct {
		name string
		long bool
		want string
	}{
		{"a short one", false, ""},
		{"a long one", true, "asking the banks, until 14:05:09 UTC\n"},
	} {
		var out strings.Builder
		cli.PrintedWait(&out, "asking the banks", time.Date(2026, 11, 22, 14, 5, 9, 0, time.UTC), c.long)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, out.String(), c.want)
		}
	}
}

// While sellers are asked to take units back, that is said, with its end, and not that the
// purchase is settled.
func TestProgressOfACancellationSaysUntilWhen(t *testing.T) {
	var out strings.Builder
	p := message.Purchase{RFQ: "job", State: user.StateSettled, Settled: true, Found: 1, Until: time.Date(2026, 11, 22, 14, 5, 9, 0, time.UTC),
		Units: []message.PurchasedUnit{{State: user.StateSettled}, {Unit: 1, State: user.StateCancelling}}}
	cli.PrintedProgress(&out, p)
	if want := "job: cancelling (1 resource found), until 14:05:09 UTC\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
