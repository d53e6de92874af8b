package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/web"
)

// counted is a user agent that counts how often its list of purchases is read.
type counted struct {
	reads  atomic.Int64
	held   chan chan bool // has what ends the next read, if that is to wait
	begun  chan bool      // receives when that read waits
	events chan control.Event
}

func serveCounted(t *testing.T) (*counted, *site) {
	c := &counted{held: make(chan chan bool, 1), begun: make(chan bool), events: make(chan control.Event)}
	f := newFake(t, plainText)
	rest := f.handler(control.User)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+control.Purchases.Path, func(w http.ResponseWriter, r *http.Request) {
		c.reads.Add(1)
		select {
		case end := <-c.held:
			c.begun <- true
			<-end
		default:
		}
		rest.ServeHTTP(w, r)
	})
	control.Agent.Answer(mux, func(context.Context, control.None) (control.LiveStatus, error) { return control.LiveStatus{}, nil })
	control.AnswerEvents(mux, func(ctx context.Context, _ control.EventsCall, send func(control.Event) error) error {
		for {
			select {
			case e := <-c.events:
				if err := send(e); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	mux.Handle("/", rest)
	return c, serve(t, control.User, plainText, func(cfg *web.Config) { cfg.Client = control.Local(mux) }).login()
}

// tab fetches the list as an open tab does.
func (s *site) tab() {
	s.t.Helper()
	r := s.request("GET", "/", nil)
	r.Header.Set("HX-Request", "true")
	answer := s.do(r)
	if b, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%d, %v: %s", answer.StatusCode, err, b)
	}
}

// open opens the stream of a tab, and waits for events of it.
func (s *site) open(query string) (hears func(want string)) {
	s.t.Helper()
	lines := bufio.NewScanner(s.do(s.request("GET", "/live?"+query, nil)).Body)
	return func(want string) {
		s.t.Helper()
		for lines.Scan() {
			if kind, is := strings.CutPrefix(lines.Text(), "event: "); is && kind == want {
				return
			}
		}
		s.t.Fatalf("%s ends, want %q", query, want)
	}
}

// Tabs that fetch themselves again after an event share one drawing; those after the next event,
// and whoever loads the page or has just done something, get a new one.
func TestTabsShareWhatIsDrawn(t *testing.T) {
	c, s := serveCounted(t)
	before, began := time.Now(), time.Now()
	drawn := func(what string, want int64) {
		t.Helper()
		more := int64(time.Since(before) / time.Second) // on a slow machine: a drawing is shared for a second
		if got := c.reads.Swap(0); got < want || got > want+more {
			t.Errorf("%s: drawn %d times, want %d", what, got, want)
		}
		if want > 0 {
			before = began // of the step that drew last
		}
		began = time.Now()
	}
	s.tab()
	s.tab()
	drawn("while no page is open", 2)
	hears := s.open("on=purchase")
	hears("hello")
	for range 20 {
		s.tab()
	}
	drawn("20 tabs", 1)
	s.do(s.request("GET", "/", nil))
	drawn("a person who loads the page", 1)
	c.events <- control.Event{Number: 1, Kind: control.EventPurchase, Data: json.RawMessage(`{"id":"p1"}`)}
	hears("change")
	for range 20 {
		s.tab()
	}
	drawn("20 tabs after a change", 1)
	other := s.open("on=run")
	other("hello")
	c.events <- control.Event{Number: 2, Kind: control.EventRun, Data: json.RawMessage(`{"id":"r1"}`)}
	other("change")
	s.tab()
	drawn("a change of another page", 0)
	s.do(s.request("POST", "/approve", url.Values{"id": {"p1"}}))
	s.tab()
	drawn("after something was done", 1)
}

// A drawing that began before an event is not given to a tab that was told of the event.
func TestADrawingFromBeforeAnEventIsNotShared(t *testing.T) {
	c, s := serveCounted(t)
	hears := s.open("on=purchase")
	hears("hello")
	end := make(chan bool)
	c.held <- end
	slow := make(chan bool)
	request := s.request("GET", "/", nil)
	request.Header.Set("HX-Request", "true")
	go func() {
		defer close(slow)
		if answer, err := s.client.Do(request); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-c.begun
	c.events <- control.Event{Number: 1, Kind: control.EventPurchase, Data: json.RawMessage(`{"id":"p1"}`)}
	hears("change")
	s.tab()
	if got := c.reads.Load(); got != 2 {
		t.Errorf("drawn %d times, want 2", got)
	}
	close(end)
	<-slow
}
