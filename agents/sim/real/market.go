package real

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ramp/agents/sim/wan"
)

// Directories of a soak.
const (
	disksDir  = "disks"  // the agents' images
	agentsDir = "agents" // where they are mounted
	logsDir   = "logs"
	booksDir  = "books" // copies for the comparison
)

// market owns a soak's fleet, what its buyers learnt, and the faults in progress.
type market struct {
	cfg   Config
	fleet *fleet
	notes *notes

	mu     sync.Mutex
	faults map[Kind]int
	broken int
	cuts   map[[2]int]int // number of faults that cut a link
}

// build creates the WAN, the disks and the agents' files, and starts all agents.
func build(ctx context.Context, cfg Config) (*market, error) {
	m := &market{cfg: cfg, notes: newNotes(cfg), faults: map[Kind]int{}, cuts: map[[2]int]int{}}
	for _, d := range []string{disksDir, agentsDir, logsDir, booksDir} {
		if err := os.Mkdir(filepath.Join(cfg.Dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if m.fleet, err = newFleet(cfg.Program, "soak-ca", cfg.Resources, cfg.Users, cfg.Seed); err != nil {
		return nil, err
	}
	if err := m.distances(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	for _, name := range names(cfg.Resources, cfg.Users) {
		if err := m.add(name); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), m.close())
		}
	}
	if err := m.fleet.start(ctx, m.configure); err != nil {
		m.end()
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// distances sets the delay of every pair, equal in both directions.
func (m *market) distances() error {
	r := mathrand.New(mathrand.NewPCG(m.cfg.Seed, 2))
	var errs []error
	for a := range m.fleet.wan.Hosts() {
		for b := range a {
			l := wan.Link{Delay: leastDelay + time.Duration(r.Int64N(int64(mostDelay-leastDelay))), Jitter: jitter, Loss: loss}
			errs = append(errs, m.fleet.wan.SetLink(a, b, l), m.fleet.wan.SetLink(b, a, l))
		}
	}
	return errors.Join(errs...)
}

// add creates the disk and the files of an agent.
func (m *market) add(name string) error {
	dir := filepath.Join(m.cfg.Dir, agentsDir, name)
	d, err := makeDisk(filepath.Join(m.cfg.Dir, disksDir, name+".img"), dir)
	if err != nil {
		return err
	}
	if err := m.fleet.add(name, d, filepath.Join(m.cfg.Dir, logsDir, name+".log")); err != nil {
		return errors.Join(err, d.unmount())
	}
	return nil
}

// configure writes the configuration of agent i.
func (m *market) configure(i int, a *agent) error {
	switch kind(a.name) {
	case "bank":
		return m.fleet.configure(a, heartbeat, fmt.Sprintf("bank: {currencies: [%s], grace: %s}\n", currency, grace))
	case "user":
		return m.fleet.configure(a, heartbeat, fmt.Sprintf("user: {%s, hold: %s, settle: %s}\n", m.fleet.pay(), hold, settle))
	}
	idle := fmt.Sprintf("; Version: 2.2\n; Computer: %s\n; MaxProcs: %d\n1 0 0 10 1 -1 -1 1 10 -1 1 -1 -1 -1 1 -1 -1 -1\n", a.name, cores)
	if err := os.WriteFile(filepath.Join(a.disk.dir, "idle.swf"), []byte(idle), 0o600); err != nil {
		return err
	}
	return m.fleet.configure(a, heartbeat, m.fleet.seller(TrialSite{Log: "idle.swf", Base: 1000, Start: fmt.Sprint(20 + i), Min: "10"}))
}

// end ends all processes, the users first and the bank last.
func (m *market) end() {
	for i := len(m.fleet.kept) - 1; i >= 0; i-- {
		m.fleet.agents[i].leave(m.fleet.kept[i])
	}
	m.fleet.kept = nil
}

// close removes the network and the disks.
func (m *market) close() error {
	err := m.fleet.wan.Close()
	for _, a := range m.fleet.agents {
		err = errors.Join(err, a.disk.unmount())
	}
	return err
}
