package stage_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

const ann protocol.AgentID = "ann"

var key = stage.Key{Contract: "c", Launch: "l1"}

// place is a site's depot with one job, and its buyer's network to it.
type place struct {
	t     testing.TB
	root  string
	depot *stage.Depot
	grant stage.Grant
	free  atomic.Int64 // bytes; when it starts with 0, what the system says
	most  int64        // bytes of outputs
	known func(job string) bool
	told  chan protocol.Message
	wrong atomic.Int64 // requests that were refused
	bound int64        // of these; 0: none
	stop  func()
}

// refused counts a refused request.
func (p *place) refused() error {
	if n := p.wrong.Add(1); p.bound > 0 && n > p.bound {
		return errBroken
	}
	return nil
}

func newPlace(t testing.TB, inputs ...protocol.StagedFile) *place {
	t.Helper()
	p := &place{t: t, root: t.TempDir(), grant: stage.Grant{Job: "j1", Staging: true, Inputs: inputs}, told: make(chan protocol.Message, 1<<16)}
	p.start()
	t.Cleanup(func() { p.stop() })
	return p
}

// start starts the depot, as after a crash of its site if there was one.
func (p *place) start() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg := stage.DepotConfig{Agent: "site", Root: p.root, Output: p.most, Log: slog.New(slog.DiscardHandler), Grant: p.look}
	if p.free.Load() != 0 {
		cfg.Free = func(string) (int64, error) { return p.free.Load(), nil }
	}
	if p.known != nil {
		cfg.Known = func(_ context.Context, job string) bool { return p.known(job) }
	}
	p.depot = stage.NewDepot(cfg)
	done := make(chan struct{})
	d := p.depot
	go func() {
		defer close(done)
		d.Run(ctx, func(m protocol.Message) { p.told <- m })
	}()
	p.stop = func() { cancel(); <-done }
	if got := p.ask(message.Prepare{Job: "j1", Inputs: p.grant.Inputs}).(message.Prepared); got.Why != "" {
		p.t.Fatalf("no place for the job: %s", got.Why)
	}
}

func (p *place) look(_ context.Context, from protocol.AgentID, k stage.Key) (stage.Grant, error) {
	if from != ann || k != key {
		return stage.Grant{}, &stage.Refusal{Code: protocol.CodeUnknown, Note: "no such launch of yours here"}
	}
	return p.grant, nil
}

// ask asks the depot as its role does, and returns the answer.
func (p *place) ask(body protocol.Body) protocol.Body {
	p.t.Helper()
	for len(p.told) > 0 {
		<-p.told
	}
	p.depot.Send(protocol.Message{Body: body})
	select {
	case m := <-p.told:
		return m.Body
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("no answer to %s", body.Kind())
	}
	return nil
}

func (p *place) collect() message.Collected {
	p.t.Helper()
	return p.ask(message.Collect{Job: "j1", Inputs: p.grant.Inputs}).(message.Collected)
}

// work is a path where the job runs.
func (p *place) work(name string) string {
	return filepath.Join(p.root, "j1", "work", filepath.FromSlash(name))
}

func (p *place) leave(name, content string) {
	p.t.Helper()
	write(p.t, p.work(name), content)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// line is one end of a stream. It reads in pieces of at most so many bytes, and
// breaks after so many in total; 0: never.
type line struct {
	io.Reader
	io.Writer
	shut    func(error)
	pieces  int
	mu      *sync.Mutex
	left    *int
	breaks  bool
	closeWr func() error
}

var errBroken = errors.New("the line is broken")

func (l *line) Read(b []byte) (int, error) {
	if l.pieces > 0 && len(b) > l.pieces {
		b = b[:l.pieces]
	}
	n, err := l.Reader.Read(b)
	if broken := l.count(n); broken != nil {
		return n, broken
	}
	return n, err
}

func (l *line) count(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *l.left -= n; l.breaks && *l.left <= 0 {
		l.shut(errBroken)
		return errBroken
	}
	return nil
}

func (l *line) SetDeadline(time.Time) error { return nil }
func (l *line) CloseWrite() error           { return l.closeWr() }
func (l *line) Close() error                { l.shut(errBroken); return nil }

// link is a stream of an agent's to the place, and what ends it. The exchange ends
// with the first error on either side.
func (p *place) link(from protocol.AgentID, pieces, breaksAfter int) (stage.Stream, func() error) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	shut := func(err error) {
		for _, x := range []*io.PipeReader{ar, br} {
			_ = x.CloseWithError(err)
		}
		for _, x := range []*io.PipeWriter{aw, bw} {
			_ = x.CloseWithError(err)
		}
	}
	var mu sync.Mutex
	left := breaksAfter
	end := func(r io.Reader, w *io.PipeWriter) *line {
		return &line{Reader: r, Writer: w, shut: shut, pieces: pieces, mu: &mu, left: &left, breaks: breaksAfter > 0, closeWr: w.Close}
	}
	here, there := end(ar, aw), end(br, bw)
	served := make(chan error, 1)
	d := p.depot
	go func() {
		err := d.Serve(context.Background(), from, there, p.refused)
		shut(io.EOF)
		served <- err
	}()
	return here, func() error { shut(errBroken); return <-served }
}

// asks sends one request as it is, and returns the answer's words.
func (p *place) asks(from protocol.AgentID, request string) string {
	p.t.Helper()
	s, end := p.link(from, 0, 0)
	defer func() { _ = end() }()
	if _, err := s.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		p.t.Fatal(err)
	}
	var length [4]byte
	if _, err := io.ReadFull(s, length[:]); err != nil {
		return err.Error()
	}
	b := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(s, b); err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// source makes a file to send, and announces it under a path.
func source(t testing.TB, dir, path string, content []byte) message.RunInput {
	t.Helper()
	abs := filepath.Join(dir, filepath.FromSlash(path))
	write(t, abs, string(content))
	f, err := stage.Describe(abs, path)
	if err != nil {
		t.Fatal(err)
	}
	return message.RunInput{File: f, Source: abs}
}

// put brings one file over an exchange of its own.
func (p *place) put(in message.RunInput) error {
	s, end := p.link(ann, 0, 0)
	err := stage.Put(s, key, in)
	_ = end() // how it was served is seen in what came of it
	return err
}

func (p *place) get(f protocol.StagedFile, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	s, end := p.link(ann, 0, 0)
	err = stage.Get(s, key, f, root)
	_ = end() // likewise
	return err
}

func same(t testing.TB, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s has %d bytes (%v), want %d equal ones", path, len(got), err, len(want))
	}
}
