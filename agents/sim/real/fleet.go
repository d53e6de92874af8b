package real

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ramp/agents/control"

	"ramp/agents/sim/wan"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// maxWrong limits the violations that are kept; the first ones matter most.
const maxWrong = 1000

// fleet owns a market's network and agents, and the violations that these have caused. Its
// users may buy once it has started.
type fleet struct {
	program   string
	resources int
	ca        *identity.CA
	wan       *wan.WAN
	agents    []*agent        // in the order of names
	kept      []chan struct{} // closed when an agent is not restarted any more

	mu     sync.Mutex
	ending bool // processes may end now
	wrongs []string
}

// newFleet creates the authority and the network of a market.
func newFleet(program, authority string, resources, users int, seed uint64) (*fleet, error) {
	ca, err := identity.NewCA(authority, time.Now(), lifetime, rand.Reader)
	if err != nil {
		return nil, err
	}
	network, err := wan.New(wan.Config{Hosts: 1 + resources + users, Seed: seed})
	return &fleet{program: program, resources: resources, ca: ca, wan: network}, err
}

// add adds an agent on the next host, with its credential on its disk.
func (f *fleet) add(name string, d disk, log string) error {
	id, err := credential(f.ca, name, d.dir)
	if err != nil {
		return err
	}
	f.agents = append(f.agents, &agent{
		name: name, id: id, program: f.program, args: []string{kind(name), "serve", "--dir", d.dir},
		log: log, host: f.wan.Host(len(f.agents)), disk: d, wrong: f.wrong,
		wake: make(chan struct{}, 1), met: make(chan struct{}),
	})
	return nil
}

// kind is the agent's subcommand of ramp.
func kind(name string) string {
	switch {
	case name == bankName:
		return "bank"
	case strings.HasPrefix(name, "user"):
		return "user"
	}
	return "resource"
}

// credential creates an agent's key and certificate in its directory.
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

// configure writes an agent's configuration. All agents join through the bank.
func (f *fleet) configure(a *agent, heartbeat time.Duration, section string) error {
	text := fmt.Sprintf("listen: [/ip4/%s/tcp/4101]\nheartbeat: %s\n", a.host.Addr(), heartbeat)
	if bank := f.agents[0]; a != bank {
		text += "bootstrap: [" + bank.address + "]\n"
	}
	return os.WriteFile(filepath.Join(a.disk.dir, "config.yaml"), []byte(text+section), 0o600)
}

func (f *fleet) pay() string {
	return fmt.Sprintf("pay: [{bank: %s, currency: %s}]", f.agents[0].id, currency)
}

// seller is the section of a resource's configuration.
func (f *fleet) seller(s TrialSite) string {
	return fmt.Sprintf("resource:\n  driver: swf\n  swf: {log: %q, base: %d}\n  start_price: %q\n  minimum_price: %q\n  pricing: %q\n  %s\n"+
		"  properties: {os: LINUX, architecture: x86_64}\n", s.Log, s.Base, s.Start, s.Min, s.Pricing, f.pay())
}

// start starts all agents, opens their accounts and waits until all have met.
func (f *fleet) start(ctx context.Context, configure func(i int, a *agent) error) error {
	for i, a := range f.agents {
		if err := configure(i, a); err != nil {
			return err
		}
		kept := make(chan struct{})
		f.kept = append(f.kept, kept)
		go func() { defer close(kept); a.keep() }()
		if i == 0 {
			if err := errors.Join(a.await(ctx), fund(ctx, a, f.agents[1:], f.users())); err != nil {
				return err
			}
		}
	}
	for _, a := range f.agents {
		if err := a.await(ctx); err != nil {
			return err
		}
	}
	return until(ctx, meetTime, time.Second, func() error { return allKnown(ctx, f.users(), f.resources) })
}

// fund opens all accounts and gives the users money.
func fund(ctx context.Context, bank *agent, all, users []*agent) error {
	for _, a := range all {
		if _, err := ask(ctx, bank, control.OpenAccount, control.OpenAccountCall{Account: a.id, Name: a.name}); err != nil {
			return err
		}
	}
	for _, u := range users {
		if _, err := ask(ctx, bank, control.Credit, control.CreditCall{Account: u.name, Amount: credit}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) sites() []*agent { return f.agents[1 : 1+f.resources] }
func (f *fleet) users() []*agent { return f.agents[1+f.resources:] }

// allKnown returns an error that names a user who does not know all resources.
func allKnown(ctx context.Context, users []*agent, resources int) error {
	for _, u := range users {
		known, err := ask(ctx, u, control.Resources, control.None{})
		if err != nil {
			return err
		}
		if len(known) != resources {
			return fmt.Errorf("%s knows %d of %d resources", u.name, len(known), resources)
		}
	}
	return nil
}

// wrong records a violation.
func (f *fleet) wrong(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ending && len(f.wrongs) < maxWrong {
		f.wrongs = append(f.wrongs, fmt.Sprintf(format, args...))
	}
}

// violations returns those recorded so far.
func (f *fleet) violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.wrongs...)
}
