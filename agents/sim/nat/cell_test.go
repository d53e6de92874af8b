package nat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

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
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
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
// runs while the relay dies ends well.
func TestNewcomersTradeAcrossNAT(t *testing.T) {
	for _, c := range []struct {
		user, site wan.NAT
		path       string
	}{
		{wan.PortRestricted, wan.PortRestricted, "punched"},
		{wan.Symmetric, wan.FullCone, ""}, // the path may be punched or not
		{wan.OutboundOnly, wan.OutboundOnly, "relayed"},
	} {
		t.Run(c.user.String()+" and "+c.site.String(), func(t *testing.T) {
			cfg := config(t, c.user, c.site)
			cfg.KillRelay, cfg.Last = true, 5*time.Second
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

// A site's router gets another address: a purchase that waits for the site gets it. Nobody
// tells the site, so until it next says something on its open connections, no call arrives.
func TestASiteThatMovesIsFoundAgain(t *testing.T) {
	ctx, m := found(t, config(t, wan.Public, wan.PortRestricted))
	buy := []string{"user", "buy", "-n", "1", "-t", jobTime, "--within", "1d", "--max-price", "10"}
	must(t, m.user.command(ctx, io.Discard, buy...))
	must(t, m.wan.Move(siteHost))
	must(t, m.user.command(ctx, io.Discard, append(buy, "--wait", "1m")...))
}

// A laptop sleeps while its program runs, and wakes in another network. The same command
// continues the same purchase.
func TestALaptopThatWakesElsewhereFindsItsPurchase(t *testing.T) {
	ctx, m := found(t, config(t, wan.PortRestricted, wan.OutboundOnly))
	must(t, m.user.serve(ctx))
	r, w := io.Pipe()
	args := []string{"run", "-n", "1", "-t", jobTime, "--max-price", "10", "--", "sh", "-c", "echo begun; sleep 5; echo over"}
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
	var list strings.Builder
	must(t, m.user.command(ctx, &list, "user", "list", "--json"))
	var purchases []json.RawMessage
	must(t, json.Unmarshal([]byte(list.String()), &purchases))
	if len(purchases) != 1 {
		t.Errorf("%d purchases: want the one before the sleep\n%s", len(purchases), list.String())
	}
}

// asleep stops the daemon for longer than a machine that is awake would pause it.
func (p *party) asleep(meanwhile func() error) error {
	if err := p.daemon.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wake := time.NewTimer(asleepTime)
	defer wake.Stop()
	err := meanwhile()
	<-wake.C
	return errors.Join(err, p.daemon.Process.Signal(syscall.SIGCONT))
}

const asleepTime = 25 * time.Second
