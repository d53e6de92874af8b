package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/protocol/message"
)

// PrintedProgress is what is printed of a purchase that goes on, where there is no terminal.
func PrintedProgress(w io.Writer, states ...message.Purchase) {
	p := NewProgress(w)
	for _, v := range states {
		p.Purchase(v)
	}
}

// PrintedWait is what is said of a wait for something until an instant, where there is no
// terminal, that lasts for longer than a while, or not.
func PrintedWait(w io.Writer, what string, until time.Time, long bool) {
	while := make(chan time.Time)
	stop := awaitingAfter(NewProgress(w), while, what, until)
	if long {
		while <- time.Time{}
	}
	stop()
}

// Follow follows a purchase that an agent tells of so, and nothing more, since a time.
func Follow(ctx context.Context, begun time.Time, wait time.Duration, told message.Purchase) (code int, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/buy", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(control.ProgressLine{Event: "deciding", Purchase: told}) // who follows reads it
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := &cobra.Command{}
	c.SetContext(ctx)
	c.SetErr(io.Discard)
	c.Flags().Duration("wait", wait, "")
	c.Flags().Bool("quiet", true, "")
	f := following{c: c, agent: control.Local(mux), show: ProgressOf(c), id: told.ID, begun: begun}
	_, err = f.follow(func(ctx context.Context, line func(control.ProgressLine) error) error {
		return control.Buy.Follow(ctx, f.agent, control.BuyCall{}, line)
	})
	return Report(io.Discard, err), err
}

// LostWords are what a command says of a purchase that it lost, by the record of its agent.
func LostWords(ctx context.Context, record message.Purchase) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/purchase", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(record) // who asks reads it
	})
	c := &cobra.Command{}
	c.SetContext(ctx)
	f := following{c: c, agent: control.Local(mux), last: message.Purchase{ID: record.ID}}
	return f.lostWords()
}

// GoneHint is the hint if the daemon ends when a purchase was last seen in a state.
func GoneHint(state string) string {
	return (&following{agent: control.Local(http.NewServeMux()), last: message.Purchase{State: state}}).goneHint()
}
