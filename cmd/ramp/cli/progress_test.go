package cli_test

import (
	"strings"
	"testing"
	"time"

	"ramp/cmd/ramp/cli"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// While a purchase goes on its lines say by when all of it starts, and how sure that is
// by the queues of those who offer it; if one does not tell, nothing.
func TestProgressSaysHowSureAStartIs(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 5, 0, 0, time.UTC)
	near, far := protocol.OddsOf(.975), protocol.OddsOf(.8)
	start := func(after time.Duration, o protocol.Odds) message.RoundStart {
		return message.RoundStart{Start: at.Add(after), Queued: o}
	}
	unit := func(o protocol.Odds) message.PurchasedUnit { return message.PurchasedUnit{Start: at, Queued: o} }
	for _, c := range []struct {
		name   string
		state  string
		starts []message.RoundStart
		units  []message.PurchasedUnit
		want   string // of the last line; empty: nothing of a start
	}{
		{"one unit", user.StateBidding, []message.RoundStart{start(0, near)}, nil, "; starts by Nov 21 14:05 UTC, 97 % sure by its queue alone"},
		{"the latest and the least sure of two", user.StateBidding, []message.RoundStart{start(time.Hour, near), start(0, far)}, nil,
			"; starts by Nov 21 15:05 UTC, 80 % sure by their queues alone"},
		{"one of two does not tell", user.StateBidding, []message.RoundStart{start(0, near), start(0, 0)}, nil, ""},
		{"nobody tells", user.StateBidding, nil, nil, ""},
		{"what was chosen", user.StateVoting, nil, []message.PurchasedUnit{unit(far)}, "; starts by Nov 21 14:05 UTC, 80 % sure by its queue alone"},
		{"bought", user.StateSettled, nil, []message.PurchasedUnit{unit(far)}, ""},
		{"failed", user.StateFailed, nil, []message.PurchasedUnit{unit(far)}, ""},
	} {
		p := message.Purchase{RFQ: "job", State: c.state, Units: c.units}
		if c.state == user.StateBidding {
			p.Rounds = []message.Round{{Round: 1, Starts: c.starts}}
		}
		var out strings.Builder
		cli.PrintedProgress(&out, message.Purchase{RFQ: "job", State: user.StateBidding}, p)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		last := lines[len(lines)-1]
		if !strings.HasSuffix(last, c.want) || strings.Contains(last, "starts") != (c.want != "") {
			t.Errorf("%s: %q, want at its end %q", c.name, last, c.want)
		}
	}
}
