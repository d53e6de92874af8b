package real

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	mathrand "math/rand/v2"

	"ramp/agents/sim/wan"
	"ramp/protocol/identity"
)

// trialHeartbeat is between presences of an agent in a trial: often enough to
// meet soon, seldom enough to cost what is measured little.
const trialHeartbeat = 5 * time.Second

// TrialSite is a resource of a trial: a workload log, from a second on, as a live
// machine that sells.
type TrialSite struct {
	Log        string // path
	Base       int64  // second of the log at which the site is opened
	Start, Min string // price, in credits per core-hour
}

// TrialConfig is a market that nobody breaks.
type TrialConfig struct {
	Program     string // path of the ramp program
	Dir         string // for everything; it must be there, and its path short
	Sites       []TrialSite
	Users       int           // 1..MaxUsers
	Least, Most time.Duration // delay one way, drawn for each pair; nothing is lost
	Seed        uint64        // of the delays
}

// Validate names the field that is wrong and what is allowed.
func (c TrialConfig) Validate() error {
	switch {
	case c.Program == "":
		return errors.New("no program to start")
	case len(c.Sites) < 1 || len(c.Sites) > MaxResources:
		return fmt.Errorf("%d resources: want 1..%d", len(c.Sites), MaxResources)
	case c.Users < 1 || c.Users > MaxUsers:
		return fmt.Errorf("%d users: want 1..%d", c.Users, MaxUsers)
	case c.Least < 0 || c.Least > c.Most:
		return fmt.Errorf("delays of %s to %s: want 0s or more, the longest last", c.Least, c.Most)
	case len(c.Dir) > maxDir:
		return fmt.Errorf("directory %s: its path has %d bytes, want at most %d, since control sockets lie in it", c.Dir, len(c.Dir), maxDir)
	}
	return nil
}

// Trial is a running market of one bank, resources and users, each a process on a
// host of its own behind a WAN. Users may buy at the same time.
type Trial struct {
	cfg    TrialConfig
	wan    *wan.WAN
	ca     *identity.CA
	agents []*agent // in the order of names
	kept   []chan struct{}

	mu     sync.Mutex
	over   bool
	wrongs []error
}

// OpenTrial starts all and waits until every user knows every resource. It needs
// what package wan does.
func OpenTrial(ctx context.Context, cfg TrialConfig) (*Trial, error) {
	if err := errors.Join(cfg.Validate(), wan.Available()); err != nil {
		return nil, err
	}
	t := &Trial{cfg: cfg}
	var err error
	if t.ca, err = identity.NewCA("trial-ca", time.Now(), lifetime, rand.Reader); err != nil {
		return nil, err
	}
	list := names(len(cfg.Sites), cfg.Users)
	if t.wan, err = wan.New(wan.Config{Hosts: len(list), Seed: cfg.Seed}); err != nil {
		return nil, err
	}
	if err := errors.Join(t.part(), t.addAll(list)); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Distances are the delays of a trial, one way, the same both ways, between host a
// and host b: the bank is host 0, then come the sites and the users.
func (c TrialConfig) Distances() [][]time.Duration {
	r := mathrand.New(mathrand.NewPCG(c.Seed, 3))
	list := make([][]time.Duration, 1+len(c.Sites)+c.Users)
	for a := range list {
		list[a] = make([]time.Duration, len(list))
		for b := range a {
			d := c.Least + time.Duration(r.Int64N(int64(c.Most-c.Least)+1))
			list[a][b], list[b][a] = d, d
		}
	}
	return list
}

// part gives every pair its delay.
func (t *Trial) part() error {
	var errs []error
	for a, row := range t.cfg.Distances() {
		for b, d := range row {
			errs = append(errs, t.wan.SetLink(a, b, wan.Link{Delay: d}))
		}
	}
	return errors.Join(errs...)
}

func (t *Trial) addAll(list []string) error {
	for i, name := range list {
		dir := filepath.Join(t.cfg.Dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		id, err := credential(t.ca, name, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.agents = append(t.agents, &agent{
			name: name, id: id, program: t.cfg.Program, args: []string{kind(name), "serve", "--dir", dir},
			log: filepath.Join(t.cfg.Dir, name+".log"), host: t.wan.Host(i), disk: disk{dir: dir}, wrong: t.wrong,
			wake: make(chan struct{}, 1), met: make(chan struct{}),
		})
	}
	return nil
}

// wrong notes what must not happen.
func (t *Trial) wrong(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && len(t.wrongs) < maxWrong {
		t.wrongs = append(t.wrongs, fmt.Errorf(format, args...))
	}
}

// Wrong is what must not have happened so far: processes that ended.
func (t *Trial) Wrong() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.wrongs...)
}

// configure writes an agent's configuration; all but the bank join by the bank.
func (t *Trial) configure(i int) error {
	a, bank := t.agents[i], t.agents[0]
	text := fmt.Sprintf("listen: [/ip4/%s/tcp/4101]\nheartbeat: %s\n", a.host.Addr(), trialHeartbeat)
	if i > 0 {
		text += "bootstrap: [" + bank.address + "]\n"
	}
	pay := fmt.Sprintf("pay: [{bank: %s, currency: %s}]", bank.id, currency)
	switch kind(a.name) {
	case "bank":
		text += fmt.Sprintf("bank: {currencies: [%s]}\n", currency)
	case "user":
		text += fmt.Sprintf("user: {%s}\n", pay)
	default:
		s := t.cfg.Sites[i-1]
		text += fmt.Sprintf("resource:\n  driver: swf\n  swf: {log: %q, base: %d}\n  start_price: %q\n  minimum_price: %q\n  %s\n"+
			"  properties: {os: LINUX, architecture: x86_64}\n", s.Log, s.Base, s.Start, s.Min, pay)
	}
	return os.WriteFile(filepath.Join(a.disk.dir, "config.yaml"), []byte(text), 0o600)
}

// start starts all, gives everybody an account and waits until all have met.
func (t *Trial) start(ctx context.Context) error {
	for i, a := range t.agents {
		if err := t.configure(i); err != nil {
			return err
		}
		kept := make(chan struct{})
		t.kept = append(t.kept, kept)
		go func() { defer close(kept); a.keep() }()
		if i == 0 {
			if err := errors.Join(a.await(ctx), fund(ctx, a, t.agents[1:], t.users())); err != nil {
				return err
			}
		}
	}
	for _, a := range t.agents {
		if err := a.await(ctx); err != nil {
			return err
		}
	}
	return until(ctx, meetTime, time.Second, func() error { return allKnown(ctx, t.users(), len(t.cfg.Sites)) })
}

func (t *Trial) users() []*agent { return t.agents[1+len(t.cfg.Sites):] }

// Close kills all processes, waits for them and takes the network away. What they
// have written stays.
func (t *Trial) Close() error {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	for _, a := range t.agents {
		a.abandon()
	}
	err := t.wan.Close()
	for _, kept := range t.kept {
		<-kept
	}
	return err
}
