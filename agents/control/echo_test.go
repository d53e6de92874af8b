package control_test

import (
	"context"
	"net/http"

	"ramp/agents/control"
	"ramp/protocol/message"
)

// echo is the control socket's front with calls that answer at once: everything between
// the socket and the roles.
func echo() http.Handler {
	mux := http.NewServeMux()
	control.Buy.Stream(mux, func(_ context.Context, q control.BuyCall, send func(control.ProgressLine) error) error {
		return send(control.ProgressLine{Event: q.ID, Done: true})
	})
	control.Cancel.Stream(mux, func(context.Context, control.IDCall, func(control.ProgressLine) error) error {
		return context.DeadlineExceeded
	})
	control.Check.Answer(mux, func(_ context.Context, q control.CheckCall) ([]message.QuoteLine, error) {
		return []message.QuoteLine{{Round: q.Rounds}}, nil
	})
	control.Offers.Answer(mux, func(_ context.Context, q control.LastCall) ([]message.QuoteLine, error) {
		return []message.QuoteLine{{Round: q.Limit, Conversation: q.Before}}, nil
	})
	return control.Versioned(mux)
}
