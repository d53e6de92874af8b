package real

import (
	"context"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/protocol/message"
)

// Now is the time at which users of the trial buy.
func (t *Trial) Now() time.Time { return time.Now() }

// Bought is a purchase in a trial.
type Bought struct {
	Purchase  message.Purchase
	Responses []time.Duration // from a call for proposals to each answer, as the user agent saw them
}

// Buy orders a document through the daemon of a user, numbered from 0, and follows the
// purchase to its end. The ID must be new.
func (t *Trial) Buy(ctx context.Context, user int, id string, document []byte, options message.Options) (Bought, error) {
	u := t.fleet.users()[user]
	p, err := u.buy(ctx, control.BuyCall{ID: id, Name: id, Document: string(document), Options: options})
	if err != nil {
		return Bought{}, err
	}
	trace, err := ask(ctx, u, control.Trace, control.IDCall{ID: id})
	return Bought{p, responses(trace)}, err
}

// responses are the times from each call for proposals to the answers before the next call:
// a round ends when all have answered.
func responses(trace []control.Traced) []time.Duration {
	var list []time.Duration
	var called time.Time
	for _, m := range trace {
		act, _, _ := strings.Cut(strings.TrimPrefix(m.Text, "("), "\n")
		switch {
		case m.Dir == "out" && act == "cfp":
			called = m.At
		case m.Dir == "in" && !called.IsZero() && (act == "propose" || act == "refuse"):
			list = append(list, m.At.Sub(called))
		}
	}
	return list
}
