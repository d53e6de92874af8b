package nat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/sim/wan"
)

// Bounds of an experiment.
const (
	MaxBuys  = 1000
	MaxLast  = 45 * time.Second // of a slot of jobTime
	cellTime = 2 * time.Minute  // for one cell, besides further purchases
	buyTime  = 20 * time.Second
	jobTime  = "1m"
	inputs   = 256 << 10 // bytes that a job gets and gives back
)

// Config is one cell: a user and a site of some kinds.
type Config struct {
	Program    string // path of ramp
	Dir        string // for all files; it must be empty and have a short path
	User, Site wan.NAT
	Alone      bool          // the bank is the only agent at a public address
	Buys       int           // further purchases, without a program
	Forget     time.Duration // after which a NAT forgets a mapping; 0: never
	Delay      time.Duration // one-way, of every pair
	KillRelay  bool          // while a second program runs
	Last       time.Duration // how long that program runs
	Seed       uint64
}

// Validate names the field that is wrong and its limits.
func (c Config) Validate() error {
	switch {
	case c.Program == "":
		return errors.New("no program to start")
	case c.Last < 0 || c.Last > MaxLast:
		return fmt.Errorf("a program of %s: want 0s..%s", c.Last, MaxLast)
	case c.Buys < 0 || c.Buys > MaxBuys:
		return fmt.Errorf("%d purchases: want 0..%d", c.Buys, MaxBuys)
	}
	return nil
}

// Cell is what happened between a user and a site.
type Cell struct {
	User, Site string
	Join       time.Duration // of 'user init --join'
	Quote      time.Duration // of the first 'quote', which starts the daemon and meets the site
	Run        time.Duration // of 'run': auction, commit, inputs, program, outputs
	Joined     bool
	Bought     int // of Orders
	Orders     int
	Ran        int // programs that ended well, of Programs
	Files      int // whose outputs came back whole
	Programs   int
	Path       string        // between the two after the first program: direct, punched or relayed
	RunThen    time.Duration // of the 'run' during which the relay was killed
	Killed     string        // the agent that was killed as a relay; empty: none was to be
	Faults     []string
}

// network is where the hosts are: public addresses, so that libp2p takes them for such.
var network = netip.MustParsePrefix("140.88.0.0/16")

// Hosts of a cell.
const (
	bankHost = iota
	otherHost
	siteHost
	userHost
	hosts
)

// market owns the parties of a cell.
type market struct {
	cfg                     Config
	cell                    Cell
	wan                     *wan.WAN
	bank, other, site, user *party
	invitation              string
}

// Run makes one cell. The error is about the experiment itself; what the market could not do
// is in the cell.
func Run(ctx context.Context, cfg Config) (Cell, error) {
	ctx, cancel := context.WithTimeout(ctx, cellTime+time.Duration(cfg.Buys)*buyTime)
	defer cancel()
	m, err := open(ctx, cfg)
	if err != nil {
		return Cell{}, err
	}
	m.trade(ctx)
	return m.cell, m.close()
}

// close kills every process and removes the network.
func (m *market) close() error {
	err := m.wan.Close()
	for _, p := range []*party{m.bank, m.other, m.site, m.user} {
		if p.daemon != nil {
			_ = p.daemon.Wait() // it was killed
		}
	}
	return err
}

// open makes the WAN and the market in it.
func open(ctx context.Context, cfg Config) (*market, error) {
	if err := errors.Join(cfg.Validate(), wan.Available()); err != nil {
		return nil, err
	}
	w, err := wan.New(wan.Config{
		Hosts: hosts, Net: network, Seed: cfg.Seed, Forget: cfg.Forget, Link: wan.Link{Delay: cfg.Delay},
		NAT: []wan.NAT{wan.Public, wan.Public, cfg.Site, cfg.User},
	})
	if err != nil {
		return nil, err
	}
	at := func(kind, name string, host int) *party {
		return &party{program: cfg.Program, kind: kind, dir: filepath.Join(cfg.Dir, name), host: w.Host(host)}
	}
	m := &market{
		cfg: cfg, cell: Cell{User: cfg.User.String(), Site: cfg.Site.String()}, wan: w, invitation: filepath.Join(cfg.Dir, "bank", "invitation.ramp"),
		bank: at("bank", "bank", bankHost), other: at("resource", "other", otherHost), site: at("resource", "site", siteHost), user: at("user", "user", userHost),
	}
	if err := m.found(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// found makes the market: the bank, an agent that only relays, unless the bank is to be alone, and the site.
func (m *market) found(ctx context.Context) error {
	if err := m.bank.command(ctx, io.Discard, "bank", "init", "--currency", "CPU", "--credit", "1000000", "--listen", "/ip4/0.0.0.0/tcp/4101", "--dir", m.bank.dir); err != nil {
		return err
	}
	if err := m.bank.serve(ctx); err != nil {
		return err
	}
	if !m.cfg.Alone {
		if err := m.second(ctx); err != nil {
			return err
		}
	}
	err := m.sell(ctx, m.site, "site", "--programs", "as-user:root")
	var s control.LiveStatus
	for err == nil && m.cfg.Site != wan.Public && len(s.Reach.Relays) == 0 && agents.Pause(ctx, control.BusyPause) { // it needs a relay
		s, err = m.site.status(ctx)
	}
	return errors.Join(err, ctx.Err())
}

// second starts the second agent at a public address. Nobody buys from it.
func (m *market) second(ctx context.Context) error {
	return m.sell(ctx, m.other, "other", "--start-price", "1000", "--minimum-price", "1000")
}

// sell makes a site and starts it.
func (m *market) sell(ctx context.Context, p *party, name string, more ...string) error {
	args := append([]string{
		"resource", "init", "--driver", "local", "--join", m.invitation, "--name", name, "--listen", "/ip4/0.0.0.0/tcp/4101",
		"--claims", p.dir + ".claims", "--dir", p.dir,
	}, more...)
	if err := p.command(ctx, io.Discard, args...); err != nil {
		return err
	}
	return p.serve(ctx)
}

// fault records what the market could not do.
func (m *market) fault(what string, err error) {
	m.cell.Faults = append(m.cell.Faults, fmt.Sprintf("%s: %v", what, err))
}

// timed runs a command of the user.
func (m *market) timed(ctx context.Context, out io.Writer, args ...string) (time.Duration, error) {
	begun := time.Now()
	err := m.user.command(ctx, out, args...)
	return time.Since(begun), err
}

// trade has the user join, ask, run programs and buy.
func (m *market) trade(ctx context.Context) {
	var err error
	if m.cell.Join, err = m.timed(ctx, io.Discard, "user", "init", "--join", m.invitation, "--name", "ann"); err != nil {
		m.fault("join", err)
		return
	}
	m.cell.Joined = true
	if m.cell.Quote, err = m.timed(ctx, io.Discard, "user", "quote", "-n", "1", "-t", jobTime, "--within", "1d", "--max-price", "10"); err != nil {
		m.fault("quote", err)
	}
	if m.cell.Run, err = m.run(ctx, "first", "cat in.dat > out.dat", io.Discard); err != nil {
		m.fault("run", err)
	}
	m.cell.Path, _ = m.path(ctx)
	if m.cfg.KillRelay {
		if err := m.runWithout(ctx); err != nil {
			m.fault("run while the relay dies", err)
		}
	}
	for range m.cfg.Buys {
		m.cell.Orders++
		if _, err := m.timed(ctx, io.Discard, "user", "buy", "-n", "1", "-t", jobTime, "--within", "1d", "--max-price", "10"); err != nil {
			m.fault("buy", err)
			continue
		}
		m.cell.Bought++
	}
}

// run has the user run a program with a file, and compares what comes back.
func (m *market) run(ctx context.Context, name, script string, printed io.Writer) (time.Duration, error) {
	in, out := filepath.Join(m.cfg.Dir, "in.dat"), filepath.Join(m.cfg.Dir, name)
	want := make([]byte, inputs)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	if err := os.WriteFile(in, want, 0o600); err != nil {
		return 0, err
	}
	m.cell.Orders++
	m.cell.Programs++
	took, err := m.timed(ctx, printed, "run", "-n", "1", "-t", jobTime, "--max-price", "10", "-i", in, "-o", out, "--", "sh", "-c", script)
	if err != nil {
		return took, err
	}
	m.cell.Bought++
	m.cell.Ran++
	got, err := os.ReadFile(filepath.Join(out, "out.dat"))
	if err != nil || !bytes.Equal(got, want) {
		return took, errors.Join(err, fmt.Errorf("%d bytes came back: want %d", len(got), len(want)))
	}
	m.cell.Files++
	return took, nil
}

// path is how the user reaches the site, and the relay if one is in between.
func (m *market) path(ctx context.Context) (path, via string) {
	s, err := m.user.status(ctx)
	if err != nil {
		m.fault("status", err)
		return "", ""
	}
	for to, relay := range s.Reach.Through {
		if to.Name() == m.site.name() {
			return "relayed", relay.Name()
		}
	}
	if s.Reach.Punched > 0 {
		return "punched", ""
	}
	return "direct", ""
}

// runWithout runs a program and kills the relay between the two, or else the agent that could be
// one, once the program has begun. A bank comes back, since nothing is settled without it.
func (m *market) runWithout(ctx context.Context) error {
	r, w := io.Pipe()
	broken := make(chan error, 1)
	go func() {
		broken <- m.breakRelay(ctx, r)
		_, _ = io.Copy(io.Discard, r) // until w is closed
	}()
	took, err := m.run(ctx, "second", fmt.Sprintf("echo begun; sleep %d; cat in.dat > out.dat", int(m.cfg.Last.Seconds())), w)
	m.cell.RunThen = took
	_ = w.Close() // never fails
	return errors.Join(err, <-broken)
}

// breakRelay waits for the program to print something, and kills the relay.
func (m *market) breakRelay(ctx context.Context, printed io.Reader) error {
	if _, err := printed.Read(make([]byte, 16)); err != nil {
		return fmt.Errorf("the program did not begin: %w", err)
	}
	_, via := m.path(ctx)
	if via != m.bank.name() && !m.cfg.Alone {
		m.cell.Killed = m.other.name()
		m.other.kill()
		return nil
	}
	m.cell.Killed = m.bank.name()
	m.bank.kill()
	return m.bank.serve(ctx)
}
