package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"ramp/agents/control"
	"ramp/agents/web"
)

// A page hears of what it shows, and not of other purchases.
func TestAPageHearsOfItsPurchase(t *testing.T) {
	events := make(chan control.Event)
	mux := http.NewServeMux()
	control.Agent.Answer(mux, func(context.Context, control.None) (control.LiveStatus, error) { return control.LiveStatus{}, nil })
	control.AnswerEvents(mux, func(ctx context.Context, _ control.EventsCall, send func(control.Event) error) error {
		for {
			select {
			case e := <-events:
				if err := send(e); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	s := serve(t, control.User, plainText, func(c *web.Config) { c.Client = control.Local(mux) }).login()
	listen := func(query string) func(want string) {
		lines := bufio.NewScanner(s.do(s.request("GET", "/live?"+query, nil)).Body)
		return func(want string) {
			t.Helper()
			for lines.Scan() {
				kind, is := strings.CutPrefix(lines.Text(), "event: ")
				if is && kind != want {
					t.Fatalf("%s hears %q, want %q", query, kind, want)
				}
				if is {
					return
				}
			}
			t.Fatalf("%s ends, want %q", query, want)
		}
	}
	one, all, other := listen("on=purchase,round&id=p1"), listen("on=purchase&id="), listen("on=run&id=p1")
	for _, hears := range []func(string){one, all, other} {
		hears("hello")
	}
	send := func(kind string, data any) {
		b, _ := json.Marshal(data)
		events <- control.Event{Number: 1, Kind: kind, Data: b}
	}
	send(control.EventPurchase, map[string]any{"purchase": map[string]string{"id": "p2"}})
	all("change")
	send(control.EventRound, map[string]string{"id": "p2"})
	send(control.EventRound, map[string]string{"id": "p1"})
	one("change")
	send(control.EventRun, map[string]string{"id": "p1"})
	other("change")
	send(control.EventGap, nil)
	for _, hears := range []func(string){one, all, other} { // nothing else came before
		hears("fresh")
	}
}
