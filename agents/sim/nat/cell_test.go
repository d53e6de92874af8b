package nat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/sim/wan"
)

// testTime is how long a test waits for what must come.
const testTime = 2 * time.Minute

// config is a market for a test of real processes.
func config(t *testing.T, user, site wan.NAT) Config {
	t.Helper()
	program := os.Getenv("RAMP_TEST_NAT")
	if program == "" {
		t.Skip("needs root and a built program: 'make test-nat' sets RAMP_TEST_NAT")
	}
	dir, err := os.MkdirTemp("", "nat-") // its path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Parallel()
	return Config{Program: program, Dir: dir, User: user, Site: site, Delay: 10 * time.Millisecond, Forget: 30 * time.Second}
}

// found opens a market that the user has joined.
func found(t *testing.T, cfg Config) (context.Context, *market) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime+asleepTime())
	t.Cleanup(cancel)
	m, err := open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, m.close()) })
	must(t, m.user.command(ctx, io.Discard, "user", "init", "--join", m.invitation, "--name", "ann"))
	return ctx, m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Newcomers join, buy and get their files without any flag about the network. A program that
// runs while the relay dies ends well, also one that outlives the routers' mappings.
func TestNewcomersTradeAcrossNAT(t *testing.T) {
	for _, c := range []struct {
		user, site wan.NAT
		path       string
		last       time.Duration // of the second program
	}{
		{wan.PortRestricted, wan.PortRestricted, "punched", 35 * time.Second}, // idle mappings are forgotten after 30 s
		{wan.Symmetric, wan.FullCone, "", 5 * time.Second},                    // the path may be punched or not
		{wan.OutboundOnly, wan.OutboundOnly, "relayed", 5 * time.Second},
	} {
		t.Run(c.user.String()+" and "+c.site.String(), func(t *testing.T) {
			cfg := config(t, c.user, c.site)
			cfg.KillRelay, cfg.Last = true, c.last
			got, err := Run(context.Background(), cfg)
			must(t, err)
			if !got.Joined || got.Bought != 2 || got.Ran != 2 || got.Files != 2 || len(got.Faults) > 0 || c.path != "" && got.Path != c.path {
				t.Errorf("%+v, want two programs with their files, and the path %q", got, c.path)
			}
			if got.Path == "relayed" && got.Killed == "" {
				t.Error("no relay was killed")
			}
		})
	}
}

// The bank is the only agent at a public address, and its invitation has nothing but a TCP address:
// a path is punched all the same.
func TestPathsArePunchedWithNobodyPublicButTheBank(t *testing.T) {
	cfg := config(t, wan.FullCone, wan.PortRestricted)
	cfg.Alone = true
	got, err := Run(context.Background(), cfg)
	must(t, err)
	if got.Path != "punched" || got.Files != 1 || len(got.Faults) > 0 {
		t.Errorf("%+v, want a program with its files, and a punched path", got)
	}
}

// A site's router gets another address, once before an auction and once in its first round: a
// purchase that waits for the site gets it. Nobody tells the site, so until it next says
// something on its open connections, no call arrives.
func TestASiteThatMovesIsFoundAgain(t *testing.T) {
	ctx, m := found(t, config(t, wan.Public, wan.PortRestricted))
	buy := []string{"user", "buy", "-n", "1", "-t", jobTime, "--within", "1d", "--max-price", "10", "--wait", "1m"}
	must(t, m.user.command(ctx, io.Discard, buy...))
	must(t, m.wan.Move(siteHost))
	must(t, m.user.command(ctx, io.Discard, buy...))
	moved := make(chan error, 1)
	go func() { moved <- m.user.atRound(ctx, func() error { return m.wan.Move(siteHost) }) }()
	must(t, m.user.command(ctx, io.Discard, append(buy, "--rounds", "3", "--round-limit", "1s", "--no-early-close")...))
	must(t, <-moved)
	if _, settled, list := purchases(ctx, t, m.user); settled != 3 { // an attempt that failed is listed as well
		t.Errorf("%d purchases are settled: want 3\n%s", settled, list)
	}
}

// atRound waits for the next round that the user calls, and does something then.
func (p *party) atRound(ctx context.Context, f func() error) error {
	c, ok := control.Dial(p.dir)
	if !ok {
		return fmt.Errorf("the daemon of %s does not answer", p.dir)
	}
	done := errors.New("not yet")
	err := control.Events.Follow(ctx, c, control.EventsCall{}, func(e control.Event) error {
		if e.Kind != control.EventRound {
			return nil
		}
		done = f()
		return errRound
	})
	if errors.Is(err, errRound) {
		return done
	}
	return err
}

var errRound = errors.New("a round was called")

// purchases counts those of the user, and those of them that are settled, and lists all.
func purchases(ctx context.Context, t *testing.T, p *party) (made, settled int, list string) {
	t.Helper()
	var out strings.Builder
	must(t, p.command(ctx, &out, "user", "list", "--json"))
	var all []struct{ State string }
	must(t, json.Unmarshal([]byte(out.String()), &all))
	for _, x := range all {
		if x.State == "settled" {
			settled++
		}
	}
	return len(all), settled, out.String()
}

// A network with IPv6 only: an invitation leads to a purchase and a program as everywhere else.
func TestNewcomersTradeOverIPv6Only(t *testing.T) {
	cfg := config(t, wan.Public, wan.Public)
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	t.Cleanup(cancel)
	w, err := wan.New(wan.Config{Hosts: 1, Net: network})
	must(t, err)
	at := func(kind, name string) *party {
		return &party{program: cfg.Program, kind: kind, dir: filepath.Join(cfg.Dir, name), host: w.Host(0)}
	}
	m := &market{cfg: cfg, wan: w, bank: at("bank", "bank"), other: at("resource", "other"), site: at("resource", "site"), user: at("user", "user")}
	t.Cleanup(func() { must(t, m.close()) })
	for _, args := range [][]string{{"addr", "flush", "dev", "wan0"}, {"-6", "addr", "add", "2a00:88::1/128", "dev", "lo"}} {
		ip := exec.Command("ip", args...)
		must(t, w.Host(0).Start(ip))
		must(t, ip.Wait())
	}
	invitation := filepath.Join(m.bank.dir, "invitation.ramp")
	must(t, m.bank.command(ctx, io.Discard, "bank", "init", "--currency", "CPU", "--credit", "1000", "--listen", "/ip6/::/tcp/4101", "--dir", m.bank.dir))
	must(t, m.bank.serve(ctx))
	must(t, m.site.command(ctx, io.Discard, "resource", "init", "--driver", "local", "--join", invitation, "--name", "site", "--programs", "as-user:root",
		"--listen", "/ip6/::/tcp/4102", "--claims", m.site.dir+".claims", "--dir", m.site.dir))
	must(t, m.site.serve(ctx))
	must(t, m.user.command(ctx, io.Discard, "user", "init", "--join", invitation, "--name", "ann"))
	must(t, m.user.command(ctx, io.Discard, "user", "buy", "-n", "1", "-t", jobTime, "--within", "1d", "--max-price", "10"))
	if _, err := m.run(ctx, "out", "cat in.dat > out.dat", io.Discard); err != nil {
		t.Error(err)
	}
}

// A laptop sleeps while its program runs, and wakes in another network. The same command
// continues the same purchase.
func TestALaptopThatWakesElsewhereFindsItsPurchase(t *testing.T) {
	ctx, m := found(t, config(t, wan.PortRestricted, wan.OutboundOnly))
	must(t, m.user.serve(ctx))
	r, w := io.Pipe()
	args := []string{"run", "-n", "1", "-t", jobTime, "--max-price", "10", "--", "sh", "-c", "echo begun; sleep 20; echo over"}
	first, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.user.command(first, w, args...) }()
	_, err := r.Read(make([]byte, 16))
	must(t, err)
	go func() { _, _ = io.Copy(io.Discard, r) }()
	stop()
	<-ended
	_ = w.Close()
	must(t, m.user.asleep(func() error { return m.wan.Move(userHost) }))
	var out strings.Builder
	must(t, m.user.command(ctx, &out, args...))
	if !strings.Contains(out.String(), "over") {
		t.Errorf("the program printed %q", out.String())
	}
	if made, settled, list := purchases(ctx, t, m.user); made != 1 || settled != 1 {
		t.Errorf("%d of %d purchases are settled: want the one before the sleep\n%s", settled, made, list)
	}
}

// asleep stops the daemon for longer than a machine that is awake would pause it.
func (p *party) asleep(meanwhile func() error) error {
	if err := p.daemon.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wake := time.NewTimer(asleepTime())
	defer wake.Stop()
	err := meanwhile()
	<-wake.C
	return errors.Join(err, p.daemon.Process.Signal(syscall.SIGCONT))
}

// asleepTime is short in CI: RAMP_TEST_ASLEEP=1h takes as long as it says.
func asleepTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("RAMP_TEST_ASLEEP")); err == nil {
		return d
	}
	return 25 * time.Second
}
