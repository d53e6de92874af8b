package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"ramp/agents/exit"
	"ramp/agents/words"
)

// Version is the version of the calls under /v1. Adding a call or a field does not change it;
// removing one, or changing its meaning, raises it and the path.
const (
	Version = 1
	Header  = "Ramp-Control" // carries the version of each side
)

// Versioned refuses callers of another version, and calls that this version does not have,
// with a hint on what to do.
func Versioned(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(Header, strconv.Itoa(Version))
		if got := r.Header.Get(Header); got != "" && got != strconv.Itoa(Version) {
			Refuse(w, exit.Fail(exit.Failed, "after an upgrade, restart the daemon, or use the program that started it",
				"the command speaks version %.10q of the control socket, the daemon version %d", got, Version))
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			post := *r
			post.Method = http.MethodPost
			if _, pattern := mux.Handler(&post); pattern != "" {
				Refuse(w, exit.Fail(exit.Usage, "docs/CONTROL.md lists the calls", "%s %.100s: want POST", r.Method, r.URL.Path))
				return
			}
			Refuse(w, exit.Fail(exit.Failed, "is it the directory of another kind of agent ('ramp status' says)? After an upgrade, restart the daemon; docs/CONTROL.md lists the calls",
				"the daemon has no call %s %.100s in version %d of the control socket", r.Method, r.URL.Path, Version))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Answer makes a mux answer the call by f.
func (e Endpoint[Q, A]) Answer(mux *http.ServeMux, f func(ctx context.Context, q Q) (A, error)) {
	e.handle(mux, func(w http.ResponseWriter, r *http.Request, q Q) error {
		a, err := f(r.Context(), q)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // an error means that the caller left
		return nil
	})
}

// Stream makes a mux answer the call by f, which sends a value at every change. An
// error before the first value refuses the call; a later one ends the stream as its last line.
func (e Endpoint[Q, A]) Stream(mux *http.ServeMux, f func(ctx context.Context, q Q, send func(A) error) error) {
	e.handle(mux, func(w http.ResponseWriter, r *http.Request, q Q) error {
		lines := json.NewEncoder(w)
		begun := false
		err := f(r.Context(), q, func(a A) error {
			if !begun {
				w.Header().Set("Content-Type", "application/x-ndjson")
				begun = true
			}
			if err := lines.Encode(a); err != nil {
				return err
			}
			return http.NewResponseController(w).Flush()
		})
		if err == nil || !begun {
			return err
		}
		_ = lines.Encode(callError(err)) // an error means that the caller left
		return nil
	})
}

// handle calls f with the question, and refuses the call with its error.
func (e Endpoint[Q, A]) handle(mux *http.ServeMux, f func(w http.ResponseWriter, r *http.Request, q Q) error) {
	h := func(w http.ResponseWriter, r *http.Request) {
		q, err := readQuestion[Q](w, r)
		if err == nil {
			err = f(w, r, q)
		}
		if err != nil {
			Refuse(w, err)
		}
	}
	mux.HandleFunc("POST "+e.Path, h)
	if e.Reads {
		mux.HandleFunc("GET "+e.Path, h)
	}
}

// readQuestion reads the question of a call: the body of a POST, or the query of a GET.
func readQuestion[Q any](w http.ResponseWriter, r *http.Request) (q Q, err error) {
	if r.Method != http.MethodGet {
		return readBody[Q](w, r)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil {
		var text []byte
		if text, err = queryJSON(reflect.TypeFor[Q](), query); err == nil {
			err = json.Unmarshal(text, &q)
		}
	}
	if err != nil {
		return q, exit.Fail(exit.Usage, "", "request to the agent: %w", err)
	}
	return q, nil
}

// queryJSON writes the parameters of a query as the JSON object of a question. A
// parameter that the question does not have is an error.
func queryJSON(t reflect.Type, query url.Values) ([]byte, error) {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f
		}
	}
	object := map[string]any{}
	for name, values := range query {
		f, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("unknown parameter %q", name)
		}
		value, err := queryValue(f.Type, values[len(values)-1])
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		object[name] = value
	}
	return json.Marshal(object)
}

// queryValue converts a parameter to JSON: the text itself if it is a JSON value of the type,
// otherwise, and for a type of strings, a string.
func queryValue(t reflect.Type, text string) (json.RawMessage, error) {
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	if t.Kind() != reflect.String && json.Unmarshal([]byte(text), reflect.New(t).Interface()) == nil {
		return json.RawMessage(text), nil
	}
	if err := json.Unmarshal(quoted, reflect.New(t).Interface()); err != nil {
		return nil, fmt.Errorf("%.40q: %w", text, words.JSONFault(err))
	}
	return quoted, nil
}

// readBody decodes the one JSON value of a request. An empty body is the zero question.
func readBody[Q any](w http.ResponseWriter, r *http.Request) (Q, error) {
	var q Q
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxControlBody))
	d.DisallowUnknownFields()
	err := d.Decode(&q)
	if err == nil { // only at its end does the server begin to notice that the caller leaves
		_, err = d.Token()
		err = cmp.Or(err, errors.New("want one JSON value"))
	}
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return q, nil
	case errors.As(err, &long):
		return q, exit.Fail(exit.Usage, "", "request to the agent: over %d MiB", MaxControlBody>>20)
	}
	return q, exit.Fail(exit.Usage, "docs/openapi.json has the shape of every call", "request to the agent: %w", words.JSONFault(err))
}

// Refuse answers with an error.
func Refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(callError(err)) // an error means that the caller left
}

func callError(err error) CallError {
	err = stopping(err)
	e := CallError{Error: err.Error()}
	e.Code, e.Hint = exit.Of(err)
	return e
}

// CallError is a refused call in JSON.
type CallError struct {
	Error string `json:"error"`
	Code  int    `json:"exit_code"`
	Hint  string `json:"hint,omitempty"`
}

// AnswerTime is how long an agent may take to ask its banks a question of its owner.
const AnswerTime = 30 * time.Second

// ProofTime is how long a user agent waits for the proof of a receipt.
const ProofTime = 10 * time.Second

// Within bounds how long an answer takes.
func Within[Q, A any](most time.Duration, f func(ctx context.Context, q Q) (A, error)) func(ctx context.Context, q Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		return f(ctx, q)
	}
}
