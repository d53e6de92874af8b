package agents_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ramp/agents"
	"ramp/agents/markettest"
	"ramp/protocol"
)

// word is a body; a role answers word w by saving w and sending w.
type word string

func (word) Kind() string { return "word" }

func say(w string) protocol.Message { return protocol.Message{Conversation: w, Body: word(w)} }

// echo saves and sends what it receives; "quiet…" is sent without being saved,
// "alarm" asks to be woken in a minute, "tomorrow" in a day.
type echo struct{ heard []string }

func (e *echo) Receive(now time.Time, m protocol.Message) protocol.Output {
	w := string(m.Body.(word))
	e.heard = append(e.heard, w)
	out := protocol.Output{Send: []protocol.Message{m}}
	if w[0] != 'q' {
		out.Save = []protocol.Record{{Table: "words", Key: w, Value: []byte("x")}}
	}
	switch w {
	case "hints":
		out.Hint = []protocol.Message{say("hint")}
	case "alarm":
		out.WakeAt = now.Add(time.Minute)
	case "tomorrow":
		out.WakeAt = now.Add(24 * time.Hour)
	}
	return out
}

func (e *echo) Wake(time.Time) protocol.Output {
	return protocol.Output{Send: []protocol.Message{say("woken")}}
}

// disk is a store whose appends wait for the test, and fail when it says so.
type disk struct {
	mu      sync.Mutex
	kept    markettest.Store
	appends [][]protocol.Record
	gate    chan struct{} // each append takes one; nil: none waits
	fail    error
}

func (d *disk) Each(table string, f func(string, []byte) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept.Each(table, f)
}

func (d *disk) Get(table, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept.Get(table, key)
}

func (d *disk) Append(records []protocol.Record) error {
	if d.gate != nil {
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	d.appends = append(d.appends, records)
	return d.kept.Append(records)
}

func (d *disk) broken(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// keys are what each append had, in order.
func (d *disk) keys() [][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list [][]string
	for _, records := range d.appends {
		var keys []string
		for _, r := range records {
			keys = append(keys, r.Key)
		}
		list = append(list, keys)
	}
	return list
}

// rig is a Runner under test, in a bubble of virtual time.
type rig struct {
	t     *testing.T
	disk  *disk
	mu    sync.Mutex
	sent  []string
	early []string // prepared
	loads int
	role  *echo        // the one that runs
	clock atomic.Int64 // how far it is off
	*agents.Runner
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, d *disk) *rig {
	d.kept = markettest.Store{}
	r := &rig{t: t, disk: d, ended: make(chan error, 1)}
	r.Runner = agents.NewRunner(agents.Config{
		Store: d, Now: func() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) }, Log: slog.New(slog.DiscardHandler),
		Load: func(tables protocol.Tables, _ time.Time) (agents.Role, protocol.Output, error) {
			r.loads++
			r.role = &echo{}
			return r.role, protocol.Output{Send: []protocol.Message{say(fmt.Sprint("life ", r.loads))}}, nil
		},
		Route: func(m protocol.Message) { r.mu.Lock(); r.sent = append(r.sent, string(m.Body.(word))); r.mu.Unlock() },
		Prepare: func(m protocol.Message) {
			r.mu.Lock()
			r.early = append(r.early, string(m.Body.(word)))
			r.mu.Unlock()
		},
		Unavailable: func(m protocol.Message) (protocol.Message, bool) {
			return say("unavailable " + m.Conversation), m.Conversation != "silent"
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	t.Cleanup(cancel) // a test that fails must not wait for ever
	go func() { r.ended <- r.Run(ctx) }()
	synctest.Wait()
	return r
}

func (r *rig) stop() {
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Run: %v", err)
	}
}

func (r *rig) deliver(words ...string) {
	for _, w := range words {
		if err := r.Deliver(say(w)); err != nil {
			r.t.Errorf("deliver %s: %v", w, err)
		}
		synctest.Wait()
	}
}

func (r *rig) expect(what string, want ...string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.sent, want) {
		r.t.Fatalf("%s: sent %q, want %q", what, r.sent, want)
	}
}
