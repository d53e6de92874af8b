package real_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ramp/agents/sim/real"
	"ramp/agents/sim/wan"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// trialConfig is a small market; its machines are idle.
func trialConfig(t *testing.T) real.TrialConfig {
	t.Helper()
	dir, err := os.MkdirTemp("", "trial")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	log := filepath.Join(dir, "idle.swf")
	must(t, os.WriteFile(log, []byte("; Version: 2.2\n; MaxProcs: 64\n1 0 0 10 1 -1 -1 1 10 -1 1 -1 -1 -1 1 -1 -1 -1\n"), 0o600))
	site := real.TrialSite{Log: log, Base: 1000, Start: "20", Min: "10"}
	return real.TrialConfig{
		Program: "ramp", Dir: dir, Sites: []real.TrialSite{site, site}, Users: 2,
		Least: 20 * time.Millisecond, Most: 30 * time.Millisecond, Seed: 1,
	}
}

// program builds ramp.
func program(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ramp")
	if out, err := exec.Command("go", "build", "-o", path, "ramp/cmd/ramp").CombinedOutput(); err != nil {
		t.Fatalf("build ramp: %v: %s", err, out)
	}
	return path
}

func TestUsersOfATrialBuyAtOnceAcrossTheNetwork(t *testing.T) {
	if err := wan.Available(); err != nil {
		t.Skip(err)
	}
	if testing.Short() {
		t.Skip("it starts five processes, and builds them")
	}
	cfg := trialConfig(t)
	cfg.Program = program(t, cfg.Dir)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	trial, err := real.OpenTrial(ctx, cfg)
	must(t, err)
	var wg sync.WaitGroup
	for u := range cfg.Users {
		wg.Go(func() { buyInTrial(ctx, t, trial, u, cfg) })
	}
	wg.Wait()
	must(t, trial.Wrong())
	must(t, trial.Close())
}

func buyInTrial(ctx context.Context, t *testing.T, trial *real.Trial, user int, cfg real.TrialConfig) {
	now := time.Now().UTC().Truncate(time.Second)
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{{
		Name: "one", Price: 60 * protocol.Credit, TotalCores: 2, NotBefore: now.Add(time.Hour), End: now.Add(3 * time.Hour), Wall: time.Hour,
	}}}, now)
	if err != nil {
		t.Error(err)
		return
	}
	b, err := trial.Buy(ctx, user, fmt.Sprintf("trial-%d", user), doc.XML(), message.Options{Rounds: 2, RoundLimit: time.Minute})
	if err != nil || !b.Purchase.Settled {
		t.Errorf("user %d: error %v, purchase %s: %s", user, err, b.Purchase.State, b.Purchase.Why)
		return
	}
	if want := len(cfg.Sites) * len(b.Purchase.Rounds); len(b.Responses) != want {
		t.Errorf("user %d: %d responses, want %d: one of each site in each round", user, len(b.Responses), want)
	}
	for _, d := range b.Responses {
		if d < 2*cfg.Least || d > time.Minute {
			t.Errorf("user %d: a response after %s: want the way there and back at least, %s", user, d, 2*cfg.Least)
		}
	}
}

func TestDistancesAreTheSameBothWaysAndWithinTheirBounds(t *testing.T) {
	cfg := real.TrialConfig{Sites: make([]real.TrialSite, 15), Users: 30, Least: 20 * time.Millisecond, Most: 75 * time.Millisecond, Seed: 7}
	list, seen := cfg.Distances(), map[time.Duration]bool{}
	if len(list) != 46 {
		t.Fatalf("%d hosts, want 46", len(list))
	}
	for a, row := range list {
		for b, d := range row {
			if d != list[b][a] || (a == b) != (d == 0) || a != b && (d < cfg.Least || d > cfg.Most) {
				t.Errorf("from %d to %d: %s, back %s", a, b, d, list[b][a])
			}
			seen[d] = true
		}
	}
	if len(seen) < 900 {
		t.Errorf("only %d different delays of 1035 pairs", len(seen))
	}
}

func TestResponsesAreCountedFromTheCallBeforeThem(t *testing.T) {
	got := real.Responses([]real.Said{
		{Second: 0, Dir: "in", Text: "(propose\n"}, // nobody has called
		{Second: 1, Dir: "out", Text: "(cfp\n :sender x)\n"},
		{Second: 3, Dir: "in", Text: "(propose\n :sender y)\n"},
		{Second: 4, Dir: "in", Text: "(refuse\n :sender z)\n"},
		{Second: 5, Dir: "out", Text: "(cfp\n :sender x)\n"},
		{Second: 6, Dir: "in", Text: "(propose\n :sender y)\n"},
		{Second: 7, Dir: "out", Text: "(accept-proposal\n :sender x)\n"},
		{Second: 8, Dir: "in", Text: "(inform\n :sender y)\n"},
	})
	if want := "[2s 3s 1s]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAnInvalidTrialIsRefused(t *testing.T) {
	for want, bend := range map[string]func(*real.TrialConfig){
		"no program":   func(c *real.TrialConfig) { c.Program = "" },
		"0 resources":  func(c *real.TrialConfig) { c.Sites = nil },
		"0 users":      func(c *real.TrialConfig) { c.Users = 0 },
		"51 users":     func(c *real.TrialConfig) { c.Users = real.MaxUsers + 1 },
		"delays of":    func(c *real.TrialConfig) { c.Least = time.Second },
		"its path has": func(c *real.TrialConfig) { c.Dir = strings.Repeat("x", 99) },
	} {
		cfg := trialConfig(t)
		bend(&cfg)
		if _, err := real.OpenTrial(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
