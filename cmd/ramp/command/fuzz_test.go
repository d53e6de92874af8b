package command_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ramp/cmd/ramp/command"
)

// FuzzControl: whatever a caller sends is answered with one JSON value, and a
// refusal says why.
func FuzzControl(f *testing.F) {
	f.Add("/v1/buy", "1", []byte(`{"id":"x","document":"<a/>","options":{"rounds":3,"max_cost":100}}`))
	f.Add("/v1/cancel", "", []byte(`{"id":"x","unit":1}`))
	f.Add("/v1/check", "2", []byte(`{}`))
	f.Add("/v2/buy", "", []byte(`[`))
	f.Add("/v1/offers", "1", []byte(`{"limit":1e99}`))
	f.Add("/v1/buy", "1", []byte(`{"options":{"max_cost":"x"},"unknown":1}`))
	h := command.EchoControl()
	f.Fuzz(func(t *testing.T, path, version string, body []byte) {
		r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
		r.URL = &url.URL{Path: path}
		r.Header.Set("Ramp-Control", version)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 300 && w.Code < 400 {
			return // a path that is not clean: the caller is sent to the clean one
		}
		var answer struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%d: %q: %v", w.Code, w.Body, err)
		}
		if w.Code != 200 && answer.Error == "" {
			t.Fatalf("%d without a reason", w.Code)
		}
	})
}

// FuzzConfig: a configuration is good, or refused in one line as bad input.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("bank: {currencies: [CPU]}\n"))
	f.Add([]byte("listen: [/ip4/127.0.0.1/tcp/0]\nlog: {level: debug}\nmonitor: 127.0.0.1:1\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("heartbeat: -1s\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		if code := command.Main([]string{"bank", "config", "check", file}, strings.NewReader(""), &out, &errOut); code != 2 {
			t.Fatalf("ended with %d: %s", code, errOut.String())
		}
		lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
		if len(lines) > 2 || !strings.HasPrefix(lines[0], "ramp: ") {
			t.Fatalf("%d lines: %q", len(lines), errOut.String())
		}
	})
}
