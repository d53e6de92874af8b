package control

import (
	"io"
	"net/http"
)

// Local calls a handler in this process.
func Local(h http.Handler) *Client { return &Client{client: &http.Client{Transport: inProcess{h}}} }

// inProcess answers requests by a handler, streaming.
type inProcess struct{ handler http.Handler }

type pipeWriter struct {
	header http.Header
	status chan int
	body   *io.PipeWriter
	begun  bool
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) Flush() {}

func (w *pipeWriter) WriteHeader(code int) {
	if !w.begun {
		w.begun = true
		w.status <- code
	}
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// RoundTrip runs the handler until it is done or its reader closes the body.
func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	r, body := io.Pipe()
	w := &pipeWriter{header: http.Header{}, status: make(chan int, 1), body: body}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	go func() {
		t.handler.ServeHTTP(w, req)
		w.WriteHeader(http.StatusOK)
		body.Close()
	}()
	select {
	case code := <-w.status:
		return &http.Response{StatusCode: code, Header: w.header, Body: r, Request: req}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}
