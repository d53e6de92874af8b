package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/cmd/ramp/command"
)

// daemonsIn makes a bank, a user and a site in a directory, and their control sockets'
// fronts in this process.
func daemonsIn(tb testing.TB) []http.Handler {
	tb.Helper()
	dir, err := os.MkdirTemp("", "ramp-fuzz-")
	if err != nil {
		tb.Fatal(err)
	}
	bank := ""
	for _, line := range []string{
		"ca init --dir DIR/ca",
		"bank init --currency CPU --ca DIR/ca --uses 0 --dir DIR/bank --json",
		"ca issue ann --dir DIR/ca --out DIR/user",
		"bank account open ann --cert DIR/user/agent.pem --dir DIR/bank",
		"bank credit ann 1000 --dir DIR/bank",
		"resource init --driver local --claims DIR/claims --ca DIR/ca --bank BANK --name site --dir DIR/site",
	} {
		var out, told bytes.Buffer
		if code := command.Main(strings.Fields(strings.NewReplacer("DIR", dir, "BANK", bank).Replace(line)), strings.NewReader(""), &out, &told); code != 0 {
			tb.Fatalf("ramp %s: %d: %s", line, code, told.String())
		}
		var made struct{ Bank string }
		if json.Unmarshal(out.Bytes(), &made) == nil {
			bank = made.Bank
		}
	}
	if err := os.WriteFile(dir+"/user/config.yaml", []byte("user: {}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	fronts, stop, err := command.Controls(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		stop()
		_ = os.RemoveAll(dir)
	})
	return fronts
}

// fuzzedCall bounds one call: those that follow something go on for as long as somebody
// listens.
const fuzzedCall = 200 * time.Millisecond

// FuzzDaemons: whatever a caller says to a daemon of any kind, the daemon answers in JSON
// and lives on; a refusal says why. Calls that write to a path of the caller's choice are
// left out: they would.
func FuzzDaemons(f *testing.F) {
	fronts := daemonsIn(f)
	for _, c := range []struct {
		kind       byte
		path, body string
	}{
		{0, "/v1/credit", `{"account":"ann","amount":1,"currency":"CPU","after":1}`},
		{0, "/v1/transfer", `{"from":"ann","to":"group:A","amount":9223372036854.775807}`},
		{0, "/v1/policy", `{"currency":"CPU","policy":"allowance","decay":0.1}`},
		{0, "/v1/group", `{"group":"A","shared":500000,"members":[{"user":"ann","share":1000000,"pays":"user"}],"clusters":["ann"]}`},
		{0, "/v1/report", `{"from":"2026-01-01T00:00:00Z","step":1,"top":5}`},
		{0, "/v1/invite", `{"uses":2,"expires":"2036-01-01T00:00:00Z","credit":1,"addresses":["/ip4/127.0.0.1/tcp/1"]}`},
		{0, "/v1/proof", `{"contract":"00","from":-1,"entries":[0,1,18446744073709551615]}`},
		{0, "/v1/statement", `{"account":"ann","limit":-1,"after":3}`},
		{0, "/v1/entries", `{"after":0,"limit":1000000}`},
		{0, "/v1/audit", `{"signatures":true}`},
		{0, "/v1/arbitrate", `{"contract":"0","unit":-1,"amount":1,"ref":"x"}`},
		{0, "/v1/standing", `{"account":"ann","standing":"closed"}`},
		{1, "/v1/buy", `{"id":"x","document":"<a/>","options":{"rounds":1,"round_limit":1}}`},
		{1, "/v1/exchange", `{"id":"x","from":"CPU","to":"GPU","gives":1}`},
		{1, "/v1/usage", `{"id":"x","unit":1,"agree":true}`},
		{1, "/v1/run/control", `{"id":"x","verb":"kill"}`},
		{1, "/v1/purchases", `{"limit":-1}`},
		{1, "/v1/trace", `{"id":"x"}`},
		{1, "/v1/runway", `{"over":-1}`},
		{2, "/v1/check", `{"document":"<a/>","rounds":99999999}`},
		{2, "/v1/drain", `{"why":"x"}`},
		{2, "/v1/offers", `{"limit":-1}`},
		{2, "/v1/dryrun", `{}`},
	} {
		f.Add(c.kind, "POST", c.path, []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, kind byte, method, path string, body []byte) {
		if path == "/v1/backup" || path == "/v1/run/fetch" {
			t.Skip("it writes where the caller says")
		}
		ctx, cancel := context.WithTimeout(context.Background(), fuzzedCall)
		defer cancel()
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body)).WithContext(ctx)
		r.Method, r.URL = method, &url.URL{Path: path}
		r.Header.Set("Ramp-Control", "1")
		w := httptest.NewRecorder()
		fronts[int(kind)%len(fronts)].ServeHTTP(w, r)
		if w.Code < 300 || w.Code >= 400 { // else the path is not clean: the caller is sent to the clean one
			answersIn(t, w)
		}
	})
}

// answersIn holds that an answer is JSON values, and a refusal one that says why.
func answersIn(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code == http.StatusOK && strings.HasPrefix(w.Header().Get("Content-Type"), "text/") {
		return // figures, or what a program has printed
	}
	refused := false
	for d := json.NewDecoder(w.Body); ; {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%d: %v", w.Code, err)
		}
		if o, ok := v.(map[string]any); ok && o["error"] != nil && o["error"] != "" {
			refused = true
		}
	}
	if w.Code != http.StatusOK && !refused {
		t.Fatalf("%d without a reason", w.Code)
	}
}

// Every call of the table is answered by the agents that it is of.
func TestEveryCallOfTheTableIsAnswered(t *testing.T) {
	fronts := daemonsIn(t)
	for _, c := range control.Table() {
		if c.Kind == control.Every {
			continue // of daemons
		}
		for i, kind := range []control.Kind{control.Bank, control.User, control.Resource} {
			ctx, cancel := context.WithTimeout(t.Context(), fuzzedCall)
			w := httptest.NewRecorder()
			fronts[i].ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.Path, strings.NewReader(`{"no_such_field":1}`)).WithContext(ctx))
			cancel()
			if known := !strings.Contains(w.Body.String(), "the daemon has no call"); known != (c.Kind&kind != 0) && !sharedPath(c.Path, kind) {
				t.Errorf("%s: agents of kind %s know it: %t", c.Path, kind, known)
			}
		}
	}
}

// sharedPath reports whether another row of the table has a path for a kind.
func sharedPath(path string, kind control.Kind) bool {
	return slices.ContainsFunc(control.Table(), func(c *control.Call) bool { return c.Path == path && c.Kind&kind != 0 })
}
