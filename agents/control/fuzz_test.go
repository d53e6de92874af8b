package control_test

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"testing"
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
	h := echo()
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
		if w.Code == 200 && json.Valid(w.Body.Bytes()) {
			return // many are lists
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code == 200 || answer.Error == "" {
			t.Fatalf("%d: %q (%v)", w.Code, w.Body, err)
		}
	})
}
