package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/exit"
	"ramp/agents/journal"
	"ramp/agents/mesh"
	"ramp/agents/resource/federation"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/protocol/message"
)

// Bounds of the benchmark of a federation.
const (
	MaxEnglishJobs  = federation.MaxJobs
	MaxEnglishSites = 32
	englishModules  = 1024
	englishTime     = 5 * time.Minute // most for either part
)

// EnglishConfig is a federation to measure.
type EnglishConfig struct {
	Jobs, Sites int
	AtOnce      int // jobs that are offered and not over
}

// EnglishFigures are what auctions of jobs cost; the names are fixed. Bare is an exchange of as
// many frames of the same size between the same hosts.
type EnglishFigures struct {
	Jobs          int     `json:"jobs"`
	Sites         int     `json:"sites"`
	AtOnce        int     `json:"at_once"`
	Elapsed       float64 `json:"elapsed_s"`
	PerSecond     float64 `json:"per_second"` // auctions
	CPU           float64 `json:"cpu_ms"`     // of an auction, of all sites together
	Messages      float64 `json:"messages"`   // of an auction
	Bytes         float64 `json:"bytes"`
	BareElapsed   float64 `json:"bare_elapsed_s"`
	BarePerSecond float64 `json:"bare_per_second"` // as many messages as an auction has
	BareCPU       float64 `json:"bare_cpu_ms"`
}

// englishBench is a federation in this process: host 0 is the user, the others are sites.
type englishBench struct {
	*hosts
	cfg   EnglishConfig
	rules rules.Rules
	sites atomic.Pointer[map[protocol.AgentID]*agents.Runner] // nil: they do not run yet
	ids   []protocol.AgentID                                  // of the sites

	mu    sync.Mutex
	over  map[string]bool
	next  int // job to offer
	done  chan struct{}
	wrong chan error // of one

	frames atomic.Int64 // bare ones that are still to be sent
}

// MeasureEnglish lets a user offer jobs to the sites, which auction them among each other, and
// then has the same hosts exchange as many bare frames. Programs take no time: a batch system
// would be measured otherwise. Journals are in dir.
func MeasureEnglish(ctx context.Context, cfg EnglishConfig, dir string, note func(string)) (f EnglishFigures, err error) {
	h, err := newHosts(MeshConfig{Hosts: cfg.Sites + 1, TCP: true})
	if err != nil {
		return f, err
	}
	b := &englishBench{hosts: h, cfg: cfg, over: map[string]bool{}, done: make(chan struct{}), wrong: make(chan error, 1)}
	h.adapt = b.adapt
	defer func() { err = errors.Join(err, h.close()) }()
	if err := h.start(ctx); err != nil {
		return f, err
	}
	slices.SortFunc(h.all, func(x, y *mesh.Mesh) int { return strings.Compare(x.Self().Name(), y.Self().Name()) })
	stop, err := b.serve(ctx, dir)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return f, err
	}
	note(fmt.Sprintf("auctioning %d jobs among %d sites, %d at once", cfg.Jobs, cfg.Sites, cfg.AtOnce))
	f = EnglishFigures{Jobs: cfg.Jobs, Sites: cfg.Sites, AtOnce: cfg.AtOnce}
	if err := b.auctions(ctx, &f); err != nil {
		return f, err
	}
	note("exchanging as many bare frames")
	return f, b.bare(ctx, &f)
}

// adapt makes host 0 a user and the others sites.
func (b *englishBench) adapt(i int, c *mesh.Config) {
	c.Deliver = func(m protocol.Message) error {
		sites := b.sites.Load()
		switch {
		case sites == nil:
			return nil
		case i == 0:
			b.hear(m)
			return nil
		}
		return (*sites)[c.Credential.ID].Deliver(m)
	}
	c.Bare = func(_ protocol.AgentID, frame []byte) { b.pass(c.Credential.ID, frame) }
}

func (b *englishBench) serve(ctx context.Context, dir string) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for _, s := range stops {
			errs = append(errs, s())
		}
		return errors.Join(errs...)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "levels: [low, urgent]\nmean: 1s\nusers: {'*': urgent}\nsites:\n")
	for _, m := range b.all[1:] {
		b.ids = append(b.ids, m.Self())
		fmt.Fprintf(&text, "- {agent: %s}\n", m.Self())
	}
	if b.rules, err = rules.Read([]byte(text.String())); err != nil {
		return stop, err
	}
	runners := map[protocol.AgentID]*agents.Runner{}
	for _, m := range b.all[1:] {
		r, s, err := b.site(ctx, m, filepath.Join(dir, m.Self().Name()))
		if err != nil {
			return stop, err
		}
		runners[m.Self()] = r
		stops = append(stops, s)
	}
	b.sites.Store(&runners)
	return stop, nil
}

// site starts one site, with a journal of its own.
func (b *englishBench) site(ctx context.Context, m *mesh.Mesh, dir string) (*agents.Runner, func() error, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	j, err := journal.Open(filepath.Join(dir, "journal.db"), 0)
	if err != nil {
		return nil, nil, err
	}
	r := agents.NewRunner(agents.Config{
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			s := &englishSite{}
			var out protocol.Output
			var err error
			s.site, out, err = federation.New(federation.Config{Self: m.Self(), Modules: englishModules, Rules: b.rules}, s, t, now)
			return s, out, err
		},
		Store: j, Route: m.Send, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Unavailable: func(protocol.Message) (protocol.Message, bool) { return protocol.Message{}, false },
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return r, func() error { cancel(); return errors.Join(<-ended, j.Close()) }, nil
}

// englishSite is a site whose input is there and whose programs end at once.
type englishSite struct {
	site   *federation.Site
	staged []protocol.ContractID
	begun  []protocol.ContractID
}

func (s *englishSite) Stage(_ time.Time, r federation.Run) protocol.Output {
	s.staged = append(s.staged, r.Contract)
	return protocol.Output{}
}

func (s *englishSite) Begin(_ time.Time, r federation.Run) protocol.Output {
	s.begun = append(s.begun, r.Contract)
	return protocol.Output{}
}

func (s *englishSite) Signal(time.Time, federation.Run, message.JobSignal) protocol.Output {
	return protocol.Output{}
}
func (s *englishSite) Drop(time.Time, federation.Run) protocol.Output { return protocol.Output{} }

func (s *englishSite) Receive(now time.Time, m protocol.Message) protocol.Output {
	out, _ := s.site.Receive(now, m)
	return out.Join(s.work(now))
}

func (s *englishSite) Wake(now time.Time) protocol.Output { return s.site.Wake(now).Join(s.work(now)) }

func (s *englishSite) work(now time.Time) (out protocol.Output) {
	for len(s.staged)+len(s.begun) > 0 {
		staged, begun := s.staged, s.begun
		s.staged, s.begun = nil, nil
		for _, c := range staged {
			out = out.Join(s.site.Staged(now, c))
		}
		for _, c := range begun {
			out = out.Join(s.site.Heard(now, c, protocol.JobStatus{State: protocol.JobExited, Started: now, Ended: now}))
		}
	}
	return out
}

// auctions offers the jobs and waits until they are over.
func (b *englishBench) auctions(ctx context.Context, f *EnglishFigures) error {
	before, used, begun := b.counted(), cpu(syscall.RUSAGE_SELF), time.Now()
	b.mu.Lock()
	for range min(b.cfg.AtOnce, b.cfg.Jobs) {
		b.offer()
	}
	b.mu.Unlock()
	if err := b.await(ctx); err != nil {
		return err
	}
	elapsed, worked, after := time.Since(begun), cpu(syscall.RUSAGE_SELF)-used, b.counted()
	n := float64(b.cfg.Jobs)
	f.Elapsed, f.PerSecond, f.CPU = elapsed.Seconds(), n/elapsed.Seconds(), milliseconds(worked)/n
	f.Messages, f.Bytes = float64(after.Messages-before.Messages)/n, float64(after.Bytes-before.Bytes)/n
	return nil
}

func (b *englishBench) counted() (t traffic) {
	for _, m := range b.all {
		c := m.Counters()
		t.Messages += c.MessagesOut
		t.Bytes += c.BytesOut
	}
	return t
}

func (b *englishBench) await(ctx context.Context) error {
	late := time.NewTimer(englishTime)
	defer late.Stop()
	select {
	case <-b.done:
	case err := <-b.wrong:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		b.mu.Lock()
		defer b.mu.Unlock()
		return exit.Fail(exit.Failed, "", "%d of %d jobs are over after %s, %d bare frames are left", len(b.over), b.cfg.Jobs, englishTime, b.frames.Load())
	}
	select { // the last job may be a wrong one
	case err := <-b.wrong:
		return err
	default:
		return nil
	}
}

// fails ends the measurement by its first fault.
func (b *englishBench) fails(err error) {
	select {
	case b.wrong <- err:
	default:
	}
}

// offer offers the next job to its home. The mutex is held.
func (b *englishBench) offer() {
	home := b.ids[b.next%len(b.ids)]
	b.next++
	b.all[0].Send(protocol.Message{
		Performative: protocol.Request, Receivers: []protocol.AgentID{home}, Protocol: protocol.ProtocolEnglish,
		Conversation: fmt.Sprintf("job%d", b.next), ReplyWith: "offer",
		Body: message.JobOffer{Terms: message.JobTerms{Level: 1, Least: 1, Most: 4, Wall: time.Hour, Where: home}},
	})
}

// hear takes a word of a home: whenever a job is over, the next one is offered.
func (b *englishBench) hear(m protocol.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := m.Body.(message.JobProgress)
	if !ok || !p.State.Over() || b.over[m.Conversation] {
		if _, refused := m.Body.(message.Refusal); refused {
			b.fails(exit.Fail(exit.Failed, "", "%s is refused: %+v", m.Conversation, m.Body))
		}
		return
	}
	if b.over[m.Conversation] = true; p.State != message.JobDone {
		b.fails(exit.Fail(exit.Failed, "", "%s is %s: %s", m.Conversation, p.State, p.Why))
	}
	switch {
	case b.next < b.cfg.Jobs:
		b.offer()
	case len(b.over) == b.cfg.Jobs:
		close(b.done)
	}
}

// bare lets as many frames as there were jobs at once go around among the hosts.
func (b *englishBench) bare(ctx context.Context, f *EnglishFigures) error {
	b.done = make(chan struct{})
	total := int64(f.Messages * float64(f.Jobs))
	frame := make([]byte, max(1, int(f.Bytes/f.Messages)))
	b.frames.Store(total)
	used, begun := cpu(syscall.RUSAGE_SELF), time.Now()
	for i := range min(b.cfg.AtOnce, b.cfg.Jobs) {
		b.pass(b.all[i%len(b.all)].Self(), frame)
	}
	if err := b.await(ctx); err != nil {
		return err
	}
	f.BareElapsed = time.Since(begun).Seconds()
	f.BarePerSecond, f.BareCPU = float64(f.Jobs)/f.BareElapsed, milliseconds(cpu(syscall.RUSAGE_SELF)-used)/float64(f.Jobs)
	return nil
}

// pass sends a frame on to the next host, until there were enough.
func (b *englishBench) pass(at protocol.AgentID, frame []byte) {
	left := b.frames.Add(-1)
	if left == 0 {
		close(b.done)
	}
	if left <= 0 {
		return
	}
	i := slices.IndexFunc(b.all, func(m *mesh.Mesh) bool { return m.Self() == at })
	if err := b.all[i].SendBare(b.all[(i+1)%len(b.all)].Self(), frame); err != nil {
		b.fails(err)
	}
}
