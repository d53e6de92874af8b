package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"ramp/agents/config"
	"ramp/agents/exit"
)

// Client calls an agent: its daemon, or an agent in this process.
type Client struct {
	client *http.Client
	Daemon bool
}

// DaemonPatience is how long a daemon may take to give any answer at all.
const DaemonPatience = 10 * time.Second

// Dial returns a client of the directory's daemon, if one answers. A suspended daemon
// accepts connections without answering; then the caller, which goes on without a daemon,
// finds the journal in use.
func Dial(dir string) (*Client, bool) {
	if !DaemonListens(dir) {
		return nil, false
	}
	c := At(dir)
	return c, c.answers()
}

// At is a client of the directory's daemon, whether it runs now or not: each call fails
// with ErrGone while it does not.
func At(dir string) *Client {
	p := SocketPath(dir)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p)
	}
	return &Client{client: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, Daemon: true}
}

// Meet is Dial, but first gives the process that has the agent's journal or ledger open time
// to listen: a daemon that starts, or a bank that begins to lead, listens a moment later.
func Meet(dir string) (*Client, bool) {
	if cfg, err := config.Read(filepath.Join(dir, config.Name)); err == nil { // otherwise the caller reports the error
		awaitListener(dir, cfg.DataFile())
	}
	return Dial(dir)
}

// answers reports whether the agent gives any answer, even that a path is unknown.
func (c *Client) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), DaemonPatience)
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

// stream makes one call and passes each JSON value of its answer to f.
func (c *Client) stream(ctx context.Context, path string, body any, f func(json.RawMessage) error) error {
	resp, err := c.do(ctx, path, body)
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
			return c.Gone(ctx, fmt.Errorf("the agent stopped answering: %w", err))
		}
		if err := f(v); err != nil {
			return err
		}
	}
}

func (c *Client) do(ctx context.Context, path string, body any) (*http.Response, error) {
	r, w := io.Pipe()
	go func() { w.CloseWithError(json.NewEncoder(w).Encode(body)) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set(Header, strconv.Itoa(Version))
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, c.Gone(ctx, err)
	}
	if err := sameVersion(resp); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if ctx.Err() != nil { // the answer reports only that
		return nil, ctx.Err()
	}
	var e CallError
	if err := json.NewDecoder(io.LimitReader(resp.Body, MaxControlBody)).Decode(&e); err != nil || e.Error == "" {
		return nil, exit.Fail(exit.Failed, "", "the agent answered with HTTP status %d to %s", resp.StatusCode, path)
	}
	return nil, &exit.Error{Code: e.Code, Err: errors.New(e.Error), Hint: e.Hint}
}

// ErrGone means that the daemon ended during a call.
var ErrGone = errors.New("the agent's daemon ended before it answered")

// goneHint holds for every command: orders are noted, and questions change nothing.
const goneHint = "'ramp status' says whether it runs again; the same command finds what was begun"

// Gone explains why a call broke off: the caller gave up, or the daemon ended.
func (c *Client) Gone(ctx context.Context, err error) error {
	if !c.Daemon || ctx.Err() != nil {
		return err
	}
	return &exit.Error{Code: exit.Unreachable, Err: ErrGone, Hint: goneHint}
}

// stopping explains a handler's error to its caller: handlers are cancelled when the daemon stops.
func stopping(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return exit.Fail(exit.Unreachable, goneHint, "the agent is stopping")
}

// Get makes the call and returns its answer.
func (e Endpoint[Q, A]) Get(ctx context.Context, c *Client, q Q) (a A, err error) {
	err = e.Ask(ctx, c, q, &a)
	return a, err
}

// Ask makes the call and decodes its answer into a, unless a is nil.
func (e Endpoint[Q, A]) Ask(ctx context.Context, c *Client, q Q, a *A) error {
	resp, err := c.do(ctx, e.Path, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if a == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(a); err != nil {
		return c.Gone(ctx, err)
	}
	return nil
}

// Follow makes the call and passes each value of its answer to f, until the stream ends or f
// returns an error.
func (e Endpoint[Q, A]) Follow(ctx context.Context, c *Client, q Q, f func(A) error) error {
	return c.stream(ctx, e.Path, q, func(raw json.RawMessage) error {
		var ended CallError
		if json.Unmarshal(raw, &ended) == nil && ended.Error != "" && ended.Code != 0 {
			return &exit.Error{Code: ended.Code, Err: errors.New(ended.Error), Hint: ended.Hint}
		}
		var a A
		if err := json.Unmarshal(raw, &a); err != nil {
			return err
		}
		return f(a)
	})
}

// sameVersion checks that a daemon speaks this version. One without the header is older and
// speaks version 1.
func sameVersion(resp *http.Response) error {
	got := resp.Header.Get(Header)
	if got == "" || got == strconv.Itoa(Version) {
		return nil
	}
	return exit.Fail(exit.Failed, "after an upgrade, restart the daemon, or use the program that started it",
		"the daemon speaks version %.10q of the control socket, this program version %d", got, Version)
}
