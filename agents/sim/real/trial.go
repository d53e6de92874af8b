package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	mathrand "math/rand/v2"

	"ramp/agents/sim/wan"
)

// trialHeartbeat is the time between presences of an agent in a trial: short enough to meet
// soon, long enough not to disturb the measurements.
const trialHeartbeat = 5 * time.Second

// TrialSite is a resource of a trial: it plays a workload log from a given second on.
type TrialSite struct {
	Log        string // path
	Base       int64  // second of the log at which the site opens
	Start, Min string // price, in credits per core-hour
	Pricing    string // rule of its prices; empty: the default
}

// TrialConfig describes a market without faults.
type TrialConfig struct {
	Program     string // path of the ramp program
	Dir         string // for all files; it must exist and have a short path
	Sites       []TrialSite
	Users       int           // 1..MaxUsers
	Least, Most time.Duration // one-way delay, drawn for each pair; no loss
	Seed        uint64        // of the delays
}

// Validate names the field that is wrong and its limits.
func (c TrialConfig) Validate() error {
	switch {
	case c.Program == "":
		return errors.New("no program to start")
	case len(c.Sites) < 1 || len(c.Sites) > MaxResources:
		return fmt.Errorf("%d resources: want 1..%d", len(c.Sites), MaxResources)
	case c.Users < 1 || c.Users > MaxUsers:
		return fmt.Errorf("%d users: want 1..%d", c.Users, MaxUsers)
	case c.Least < 0 || c.Least > c.Most:
		return fmt.Errorf("delays of %s to %s: want 0s or more, the longer one last", c.Least, c.Most)
	case len(c.Dir) > maxDir:
		return fmt.Errorf("directory %s: its path has %d bytes, want at most %d, so that paths of control sockets fit", c.Dir, len(c.Dir), maxDir)
	}
	return nil
}

// Trial is a running market of one bank, resources and users, each a process on its own host
// behind a WAN. Users may buy at the same time.
type Trial struct {
	cfg   TrialConfig
	fleet *fleet
}

// OpenTrial starts all agents and waits until every user knows every resource. It has the
// requirements of package wan.
func OpenTrial(ctx context.Context, cfg TrialConfig) (*Trial, error) {
	if err := errors.Join(cfg.Validate(), wan.Available()); err != nil {
		return nil, err
	}
	f, err := newFleet(cfg.Program, "trial-ca", len(cfg.Sites), cfg.Users, cfg.Seed)
	if err != nil {
		return nil, err
	}
	t := &Trial{cfg: cfg, fleet: f}
	if err := errors.Join(t.part(), t.addAll()); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := f.start(ctx, t.configure); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Distances are the one-way delays of a trial between hosts a and b, equal in both
// directions. The bank is host 0, followed by the sites and the users.
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

// part sets the delay of every pair.
func (t *Trial) part() error {
	var errs []error
	for a, row := range t.cfg.Distances() {
		for b, d := range row {
			errs = append(errs, t.fleet.wan.SetLink(a, b, wan.Link{Delay: d}))
		}
	}
	return errors.Join(errs...)
}

func (t *Trial) addAll() error {
	for _, name := range names(len(t.cfg.Sites), t.cfg.Users) {
		dir := filepath.Join(t.cfg.Dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := t.fleet.add(name, disk{dir: dir}, dir+".log"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Wrong returns the violations so far: processes that have ended.
func (t *Trial) Wrong() error {
	var errs []error
	for _, v := range t.fleet.violations() {
		errs = append(errs, errors.New(v))
	}
	return errors.Join(errs...)
}

// configure writes the configuration of agent i.
func (t *Trial) configure(i int, a *agent) error {
	switch kind(a.name) {
	case "bank":
		return t.fleet.configure(a, trialHeartbeat, fmt.Sprintf("bank: {currencies: [%s]}\n", currency))
	case "user":
		return t.fleet.configure(a, trialHeartbeat, fmt.Sprintf("user: {%s}\n", t.fleet.pay()))
	}
	return t.fleet.configure(a, trialHeartbeat, t.fleet.seller(t.cfg.Sites[i-1]))
}

// Close kills all processes, waits for them and removes the network. Their files stay.
func (t *Trial) Close() error {
	t.fleet.mu.Lock()
	t.fleet.ending = true
	t.fleet.mu.Unlock()
	for _, a := range t.fleet.agents {
		a.abandon()
	}
	err := t.fleet.wan.Close()
	for _, kept := range t.fleet.kept {
		<-kept
	}
	return err
}
