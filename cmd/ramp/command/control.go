package command

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"ramp/bank/boltfile"
)

// The control socket: HTTP and JSON over a unix socket that only its owner can
// open. docs/CONTROL.md has the calls.
const (
	controlName    = "control.sock"
	maxControlBody = 8 << 20
	maxSocketPath  = 100 // bytes; the kernel's limit is 108
)

// socketPath is where the daemon of an agent's directory listens. A directory
// whose path is too long for a socket gets one below the temporary directory.
func socketPath(dir string) string {
	p := filepath.Join(dir, controlName)
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	if len(p) <= maxSocketPath {
		return p
	}
	sum := sha256.Sum256([]byte(p))
	return filepath.Join(os.TempDir(), fmt.Sprintf("ramp-%d-%x.sock", os.Getuid(), sum[:8]))
}

// ownSocket reports whether nobody else can have made a socket: below the temporary
// directory, where everybody may, it must belong to this account.
func ownSocket(p string) bool {
	if filepath.Base(p) == controlName { // in the agent's directory
		return true
	}
	info, err := os.Lstat(p)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// listenControl opens the control socket; one that a dead daemon left is
// removed. The caller holds the journal's lock, so no other daemon lives.
func listenControl(dir string) (net.Listener, error) {
	p := socketPath(dir)
	if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fail(exitFailed, "", "control socket: %w", err)
	}
	l, err := net.Listen("unix", p)
	if err != nil {
		return nil, fail(exitFailed, "", "control socket: %w", err)
	}
	if err := os.Chmod(p, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// caller makes calls to an agent: to its daemon, or to one in this process.
type caller struct {
	client *http.Client
	daemon bool
}

// daemonPatience is how long a daemon may take to say anything at all.
const daemonPatience = 10 * time.Second

// dialDaemon returns a caller of the directory's daemon, if one answers. One that is
// stopped takes connections and answers none: then it is as if none were there, and
// whoever goes on finds the journal in use.
func dialDaemon(dir string) (*caller, bool) {
	p := socketPath(dir)
	if !daemonListens(dir) {
		return nil, false
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p)
	}
	c := &caller{client: &http.Client{Transport: &http.Transport{DialContext: dial}}, daemon: true}
	return c, c.answers()
}

// meetDaemon is dialDaemon that gives whoever has the agent's journal or ledger time to
// listen: a daemon that begins does so a moment later, as does a bank that begins to lead.
func meetDaemon(dir string) (*caller, bool) {
	if cfg, err := readConfig(filepath.Join(dir, configName)); err == nil { // otherwise whoever goes on says so
		awaitListener(dir, cfg.dataFile())
	}
	return dialDaemon(dir)
}

func awaitListener(dir, file string) {
	late := time.Now().Add(busyTime)
	again := time.NewTicker(busyPause)
	defer again.Stop()
	for !daemonListens(dir) && time.Now().Before(late) {
		if who, err := boltfile.Holder(file); err != nil || who == nil {
			return
		}
		<-again.C
	}
}

// daemonListens reports whether a process of this account, or of root, has the control
// socket of a directory.
func daemonListens(dir string) bool {
	p := socketPath(dir)
	if !ownSocket(p) {
		return false
	}
	conn, err := net.DialTimeout("unix", p, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// answers reports whether the agent says anything; that a path is unknown will do.
func (c *caller) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), daemonPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// localCaller calls a handler in this process.
func localCaller(h http.Handler) *caller {
	return &caller{client: &http.Client{Transport: inProcess{h}}}
}

// inProcess answers requests by a handler, streaming.
type inProcess struct{ handler http.Handler }

// pipeWriter is the ResponseWriter of inProcess.
type pipeWriter struct {
	header http.Header
	status chan int
	body   *io.PipeWriter
	begun  bool
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) Flush()              {}
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

// RoundTrip runs the handler until it is done or the reader leaves.
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

// callError is how a refused call looks on the socket.
type callError struct {
	Error string `json:"error"`
	Code  int    `json:"exit_code"`
	Hint  string `json:"hint,omitempty"`
}

// call makes one call and decodes its answer into v, unless v is nil.
func (c *caller) call(ctx context.Context, method, path string, body, v any) error {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return c.gone(ctx, err)
	}
	return nil
}

// stream makes one call and hands each JSON value of its answer to f.
func (c *caller) stream(ctx context.Context, path string, body any, f func(json.RawMessage) error) error {
	resp, err := c.do(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	for {
		var v json.RawMessage
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return c.gone(ctx, fmt.Errorf("the agent stopped answering: %w", err))
		}
		if err := f(v); err != nil {
			return err
		}
	}
}

func (c *caller) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(json.NewEncoder(w).Encode(body)) }()
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set(controlHeader, strconv.Itoa(controlVersion))
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.gone(ctx, err)
	}
	if err := sameVersion(resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if ctx.Err() != nil { // then what is answered is of that
		return nil, ctx.Err()
	}
	var e callError
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxControlBody)).Decode(&e); err != nil || e.Error == "" {
		return nil, fail(exitFailed, "", "the agent answered %d to %s", resp.StatusCode, path)
	}
	return nil, &exitError{code: e.Code, err: errors.New(e.Error), hint: e.Hint}
}

// handler makes an HTTP handler of a function that reads a Q and answers an A.
func handler[Q, A any](f func(ctx context.Context, q Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := readBody[Q](w, r)
		if err != nil {
			refuseCall(w, err)
			return
		}
		a, err := f(r.Context(), q)
		if err != nil {
			refuseCall(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // the caller has gone, or sees what came
	}
}

// readBody decodes the one JSON value of a request; an empty one is zero.
func readBody[Q any](w http.ResponseWriter, r *http.Request) (Q, error) {
	var q Q
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil && !errors.Is(err, io.EOF) {
		return q, fail(exitUsage, "", "request to the agent: %w", err)
	}
	return q, nil
}

// refuseCall answers an error.
func refuseCall(w http.ResponseWriter, err error) {
	err = stopping(err)
	e := callError{Error: err.Error(), Code: exitFailed}
	var x *exitError
	if errors.As(err, &x) {
		e.Code, e.Hint = x.code, x.hint
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(e) // the caller has gone, or sees it
}
