package real

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	mathrand "math/rand/v2"

	"ramp/agents/sim/wan"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// Directories of a soak.
const (
	disksDir  = "disks"  // the agents' images
	agentsDir = "agents" // and where they are mounted
	logsDir   = "logs"
	booksDir  = "books" // what is compared: copies
)

// maxWrong bounds the violations that are kept; the first tell most.
const maxWrong = 1000

// market is a market of processes behind a WAN.
type market struct {
	cfg    Config
	wan    *wan.WAN
	ca     *identity.CA
	agents []*agent // in the order of names
	kept   []chan struct{}
	notes  *notes

	mu     sync.Mutex
	wrongs []string
	faults map[Kind]int
	broken int
	cuts   map[[2]int]int // how many faults cut a link
}

// build makes the WAN, the disks and everybody's files, and starts all.
func build(ctx context.Context, cfg Config) (*market, error) {
	m := &market{cfg: cfg, notes: newNotes(cfg), faults: map[Kind]int{}, cuts: map[[2]int]int{}}
	for _, d := range []string{disksDir, agentsDir, logsDir, booksDir} {
		if err := os.Mkdir(filepath.Join(cfg.Dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	list := names(cfg.Resources, cfg.Users)
	var err error
	if m.ca, err = identity.NewCA("soak-ca", time.Now(), lifetime, rand.Reader); err != nil {
		return nil, err
	}
	if m.wan, err = wan.New(wan.Config{Hosts: len(list), Seed: cfg.Seed}); err != nil {
		return nil, err
	}
	if err := m.distances(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	for i, name := range list {
		if err := m.add(i, name); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), m.close())
		}
	}
	if err := m.start(ctx); err != nil {
		m.end()
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// distances gives every pair its delay, the same both ways.
func (m *market) distances() error {
	r := mathrand.New(mathrand.NewPCG(m.cfg.Seed, 2))
	var errs []error
	for a := range m.wan.Hosts() {
		for b := range a {
			l := wan.Link{Delay: leastDelay + time.Duration(r.Int64N(int64(mostDelay-leastDelay))), Jitter: jitter, Loss: loss}
			errs = append(errs, m.wan.SetLink(a, b, l), m.wan.SetLink(b, a, l))
		}
	}
	return errors.Join(errs...)
}

// add makes the disk and the files of an agent.
func (m *market) add(i int, name string) error {
	dir := filepath.Join(m.cfg.Dir, agentsDir, name)
	d, err := makeDisk(filepath.Join(m.cfg.Dir, disksDir, name+".img"), dir)
	if err != nil {
		return err
	}
	id, err := credential(m.ca, name, dir)
	if err != nil {
		return errors.Join(err, d.unmount())
	}
	m.agents = append(m.agents, &agent{
		name: name, id: id, program: m.cfg.Program, args: []string{kind(name), "serve", "--dir", dir},
		log: filepath.Join(m.cfg.Dir, logsDir, name+".log"), host: m.wan.Host(i), disk: d, wrong: m.wrong,
		wake: make(chan struct{}, 1), met: make(chan struct{}),
	})
	return nil
}

// kind is the command of an agent.
func kind(name string) string {
	switch {
	case name == bankName:
		return "bank"
	case strings.HasPrefix(name, "user"):
		return "user"
	}
	return "resource"
}

// credential makes an agent's key and certificate in its directory.
func credential(ca *identity.CA, name, dir string) (protocol.AgentID, error) {
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return "", err
	}
	cert, err := ca.Issue(name, key.Public(), time.Now(), lifetime)
	if err != nil {
		return "", err
	}
	keyPEM, err := identity.KeyPEM(key)
	if err != nil {
		return "", err
	}
	cred, err := identity.Parse(cert, keyPEM)
	if err != nil {
		return "", err
	}
	for file, b := range map[string][]byte{"agent.pem": cert, "agent.key": keyPEM, "ca.pem": ca.CertPEM()} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			return "", err
		}
	}
	return cred.ID, nil
}

// configure writes an agent's configuration; all but the bank join by the bank.
func (m *market) configure(a *agent) error {
	text := fmt.Sprintf("listen: [/ip4/%s/tcp/4101]\nheartbeat: %s\n", a.host.Addr(), heartbeat)
	bank := m.agents[0]
	if a != bank {
		text += "bootstrap: [" + bank.address + "]\n"
	}
	pay := fmt.Sprintf("pay: [{bank: %s, currency: %s}]", bank.id, currency)
	switch kind(a.name) {
	case "bank":
		text += fmt.Sprintf("bank: {currencies: [%s], grace: %s}\n", currency, grace)
	case "user":
		text += fmt.Sprintf("user: {%s, hold: %s, settle: %s}\n", pay, hold, settle)
	default:
		i := slices.Index(m.agents, a)
		text += fmt.Sprintf("resource:\n  driver: swf\n  swf: {log: idle.swf, base: 1000}\n  start_price: %q\n  minimum_price: \"10\"\n  %s\n"+
			"  properties: {os: LINUX, architecture: x86_64}\n", fmt.Sprint(20+i), pay)
		idle := fmt.Sprintf("; Version: 2.2\n; Computer: %s\n; MaxProcs: %d\n1 0 0 10 1 -1 -1 1 10 -1 1 -1 -1 -1 1 -1 -1 -1\n", a.name, cores)
		if err := os.WriteFile(filepath.Join(a.disk.dir, "idle.swf"), []byte(idle), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(a.disk.dir, "config.yaml"), []byte(text), 0o600)
}

// start starts all, gives everybody an account and waits until all have met.
func (m *market) start(ctx context.Context) error {
	for i, a := range m.agents {
		if err := m.configure(a); err != nil {
			return err
		}
		kept := make(chan struct{})
		m.kept = append(m.kept, kept)
		go func() { defer close(kept); a.keep() }()
		if i == 0 {
			if err := errors.Join(a.await(ctx), fund(ctx, a, m.agents[1:], m.users())); err != nil {
				return err
			}
		}
	}
	for _, a := range m.agents {
		if err := a.await(ctx); err != nil {
			return err
		}
	}
	return until(ctx, meetTime, time.Second, func() error { return allKnown(ctx, m.users(), m.cfg.Resources) })
}

// fund opens the accounts of all, and gives the users money.
func fund(ctx context.Context, bank *agent, all, users []*agent) error {
	for _, a := range all {
		if err := call(ctx, bank.disk.dir, "/v1/account", map[string]any{"account": a.id, "name": a.name, "limit": 0}, new(any)); err != nil {
			return err
		}
	}
	for _, u := range users {
		if err := call(ctx, bank.disk.dir, "/v1/credit", map[string]any{"account": u.name, "amount": credit}, new(any)); err != nil {
			return err
		}
	}
	return nil
}

func (m *market) sites() []*agent { return m.agents[1 : 1+m.cfg.Resources] }
func (m *market) users() []*agent { return m.agents[1+m.cfg.Resources:] }

// allKnown says which user does not know so many resources.
func allKnown(ctx context.Context, users []*agent, resources int) error {
	for _, u := range users {
		var known []struct{ ID string }
		if err := call(ctx, u.disk.dir, "/v1/resources", nil, &known); err != nil {
			return fmt.Errorf("%s: %w", u.name, err)
		}
		if len(known) != resources {
			return fmt.Errorf("%s knows %d of %d resources", u.name, len(known), resources)
		}
	}
	return nil
}

// wrong notes what must not happen.
func (m *market) wrong(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.wrongs) < maxWrong {
		m.wrongs = append(m.wrongs, fmt.Sprintf(format, args...))
	}
}

// end asks all processes to leave, the users first and the bank last.
func (m *market) end() {
	for i := len(m.kept) - 1; i >= 0; i-- {
		m.agents[i].leave(m.kept[i])
	}
	m.kept = nil
}

// close takes the network and the disks away.
func (m *market) close() error {
	err := m.wan.Close()
	for _, a := range m.agents {
		err = errors.Join(err, a.disk.unmount())
	}
	return err
}
