package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol/message"
)

func TestAReadIsAnsweredToGetAsToPost(t *testing.T) {
	for _, c := range []struct {
		method, target, body string
		code                 int
		want                 string
	}{
		{"POST", "/v1/offers", `{"limit":3,"before":"x"}`, 200, `"conversation":"x","round":3`},
		{"GET", "/v1/offers?limit=3&before=x", "", 200, `"conversation":"x","round":3`},
		{"GET", "/v1/offers?before=7", "", 200, `"conversation":"7","round":0`},
		{"GET", "/v1/offers", "", 200, `"round":0`},
		{"GET", "/v1/offers?limit=many", "", 422, `parameter \"limit\": \"many\": want a whole number`},
		{"GET", "/v1/offers?before=null", "", 200, `"conversation":"null"`},
		{"GET", "/v1/offers?limit=%zz", "", 422, `invalid URL escape`},
		{"GET", "/v1/offers?most=3", "", 422, `unknown parameter \"most\"`},
		{"POST", "/v1/offers", `[1]`, 422, `agent: want an object"`},
		{"POST", "/v1/offers", `{"limit":"3"}`, 422, `agent: limit: want a whole number"`},
		{"POST", "/v1/offers", `{"limit":3`, 422, `agent: not JSON, or cut short"`},
		{"POST", "/v1/offers", `{"most":3}`, 422, `agent: unknown field \"most\"","exit_code":2,"hint":"docs/openapi.json`},
		{"GET", "/v1/buy?id=x", "", 422, `"GET /v1/buy: want POST"`},
	} {
		w := httptest.NewRecorder()
		echo().ServeHTTP(w, httptest.NewRequest(c.method, c.target, strings.NewReader(c.body)))
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %d with %s", c.method, c.target, w.Code, w.Body, c.code, c.want)
		}
	}
}

// A server notices that a caller has left once it has read the question to its end.
func TestAQuestionIsReadToItsEnd(t *testing.T) {
	body := strings.NewReader(`{"gives":"3"} `)
	mux := http.NewServeMux()
	control.Exchange.Answer(mux, func(_ context.Context, q control.ExchangeCall) (control.Exchanged, error) {
		if body.Len() > 0 || q.Gives == 0 {
			t.Errorf("asked for %v; %d bytes are unread", q.Gives, body.Len())
		}
		return control.Exchanged{}, nil
	})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/v1/exchange", iotest.OneByteReader(body)))
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	echo().ServeHTTP(w, httptest.NewRequest("POST", "/v1/offers", strings.NewReader(`{"limit":3} {"limit":4}`)))
	if w.Code != 422 || !strings.Contains(w.Body.String(), "want one JSON value") {
		t.Errorf("two values: %d %s", w.Code, w.Body)
	}
}

func TestTheClientMakesTheCallsThatTheServerAnswers(t *testing.T) {
	c := control.Local(echo())
	var lines []message.QuoteLine
	if err := control.Check.Ask(t.Context(), c, control.CheckCall{Rounds: 4}, &lines); err != nil || len(lines) != 1 || lines[0].Round != 4 {
		t.Errorf("check: %v, %v", lines, err)
	}
	var events []string
	err := control.Buy.Follow(t.Context(), c, control.BuyCall{ID: "x"}, func(l control.ProgressLine) error {
		events = append(events, l.Event)
		return nil
	})
	if err != nil || len(events) != 1 || events[0] != "x" {
		t.Errorf("buy: %v, %v", events, err)
	}
	var refused *exit.Error
	err = control.Cancel.Follow(t.Context(), c, control.IDCall{}, func(control.ProgressLine) error { return nil })
	if !errors.As(err, &refused) || refused.Code != exit.Failed {
		t.Errorf("cancel: %v, want a refusal", err)
	}
}

func TestAStreamThatBreaksSaysWhyInItsLastLine(t *testing.T) {
	mux := http.NewServeMux()
	control.RunLog.Stream(mux, func(_ context.Context, _ control.RunCall, send func(control.LogLine) error) error {
		return errors.Join(send(control.LogLine{Stream: "stdout", Data: []byte("a")}), exit.Fail(exit.Unreachable, "wait", "the site left"))
	})
	got := 0
	err := control.RunLog.Follow(t.Context(), control.Local(mux), control.RunCall{}, func(control.LogLine) error { got++; return nil })
	var ended *exit.Error
	if got != 1 || !errors.As(err, &ended) || ended.Code != exit.Unreachable || ended.Hint != "wait" {
		t.Errorf("%d lines, then %v", got, err)
	}
}

func TestEventsAreServerSentAndGoOnFromTheLastOneSeen(t *testing.T) {
	mux := http.NewServeMux()
	control.AnswerEvents(mux, func(ctx context.Context, q control.EventsCall, send func(control.Event) error) error {
		if err := send(control.Event{Number: q.Since}); err != nil {
			return err
		}
		err := send(control.Event{Number: q.Since + 1, Kind: control.EventEntry, Data: json.RawMessage(`{"entry":1}`)})
		<-ctx.Done()
		return err
	})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/v1/events?brief=-1", http.NoBody))
	if w.Code != 422 || !strings.Contains(w.Body.String(), "brief -1: want 0..60000") {
		t.Errorf("events of a bad brief: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	again := httptest.NewRequest("GET", "/v1/events", http.NoBody)
	again.Header.Set("Last-Event-ID", "x")
	mux.ServeHTTP(w, again)
	if w.Code != 422 || !strings.Contains(w.Body.String(), `Last-Event-ID \"x\": want the number of an event"`) {
		t.Errorf("events after no number: %d %s", w.Code, w.Body)
	}
	server := httptest.NewServer(mux)
	defer server.Close()
	for last, want := range map[string]string{"": "id: 5, id: 6", "9": "id: 9, id: 10"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/events?since=5", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		var ids []string
		for len(ids) < 2 && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "id:") {
				ids = append(ids, lines.Text())
			}
		}
		if strings.Join(ids, ", ") != want || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("after %q: %q, %s", last, ids, resp.Header.Get("Content-Type"))
		}
		cancel()
		resp.Body.Close()
	}
}

func TestAPageIsInFrontOfWhatWasSeen(t *testing.T) {
	list := []string{"a", "b", "c", "d"}
	own := func(s string) string { return s }
	for _, c := range []struct {
		q    control.LastCall
		want string
	}{
		{control.LastCall{}, "abcd"},
		{control.LastCall{Limit: 2}, "cd"},
		{control.LastCall{Limit: 2, Before: "c"}, "ab"},
		{control.LastCall{Before: "a"}, ""},
	} {
		if got, err := control.Page(list, c.q, own); err != nil || strings.Join(got, "") != c.want {
			t.Errorf("%+v: %v, %v; want %s", c.q, got, err, c.want)
		}
	}
	if _, err := control.Page(list, control.LastCall{Limit: -1}, own); err == nil {
		t.Error("a limit below zero has a page")
	}
	if _, err := control.Page(list, control.LastCall{Before: "x"}, own); err == nil {
		t.Error("what is not in the list has lines in front of it")
	}
}
