package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/node"
	"ramp/agents/sim/experiment"
	"ramp/agents/workload/published"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// bringUp makes and starts every agent, the bank first: all others join by its address.
func (d *Market) bringUp(ctx context.Context) error {
	d.progress("starting one bank, %d resource agents and one user agent in %s", d.sitesWanted(), d.Dir)
	if err := d.startBank(ctx); err != nil {
		return err
	}
	if err := d.startSites(ctx); err != nil {
		return err
	}
	var err error
	if d.User, err = d.start(ctx, "user", "user", config.Config{User: &config.User{Pay: d.Pay(), Daemon: new(bool)}}); err != nil {
		return err
	}
	if err := d.openAccounts(ctx); err != nil {
		return err
	}
	return d.awaitMarket(ctx)
}

// AgentDir makes the directory of an agent: credential and configuration.
func (d *Market) AgentDir(name string, cfg config.Config) (string, error) {
	dir := filepath.Join(d.Dir, name)
	if _, err := join.Issue(d.ca, name, join.LeafLifetime, dir); err != nil {
		return "", err
	}
	cfg.Certificate, cfg.Key, cfg.Trust = "agent.pem", "agent.key", join.AnchorsFile
	if d.Bank != nil {
		cfg.Bootstrap = d.Bank.Addresses
	}
	return dir, cfg.Write(dir)
}

// start makes an agent, starts its daemon and waits until it is ready. It returns the process also if
// that is not ready, as it must be ended.
func (d *Market) start(ctx context.Context, kind, name string, cfg config.Config) (*Process, error) {
	dir, err := d.AgentDir(name, cfg)
	if err != nil {
		return nil, err
	}
	p, ready, err := spawn(dir, d.Keep, nil, kind, "serve", "--dir", dir)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, ready)
}

func (d *Market) startBank(ctx context.Context) (err error) {
	if d.ca, err = identity.NewCA("demo-ca", time.Now(), join.CaLifetime, rand.Reader); err != nil {
		return err
	}
	if err := join.WriteCA(filepath.Join(d.Dir, "ca"), d.ca); err != nil {
		return err
	}
	cfg := config.Config{Bank: &config.Bank{Currencies: []string{currency}, Enrol: &config.Enrol{Authority: filepath.Join("..", "ca")}}}
	if d.Bank, err = d.start(ctx, "bank", "bank", cfg); err != nil {
		return err
	}
	return settle(d.Bank.Dir, d.Bank.Addresses)
}

// settle makes an agent listen at its present addresses after a restart, too: the others know the
// market by them.
func settle(dir string, addresses []string) error {
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return err
	}
	cfg.Listen = nil
	for _, a := range addresses {
		host, _, _ := strings.Cut(a, "/p2p/")
		cfg.Listen = append(cfg.Listen, host)
	}
	return cfg.Write(dir)
}

// The demonstration's invitation.
const (
	uses        = 100
	expires     = 7 * 24 * time.Hour
	guestCredit = 1_000_000 * protocol.Credit
)

// Invite writes an invitation to the directory of a market that is kept.
func (d *Market) Invite(ctx context.Context) error {
	q := control.InviteCall{
		Uses: uses, Expires: time.Now().Add(expires).Truncate(time.Second), Credit: guestCredit, Currency: currency,
		Market: "demo", Ref: "demo",
	}
	var a control.InviteAnswer
	if err := Ask(ctx, d.Bank, control.Invite, q, &a); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.Dir, node.InvitationName), []byte(a.Invitation), 0o600)
}

// startSites starts the twenty resource agents side by side.
func (d *Market) startSites(ctx context.Context) error {
	var waits []*os.File
	var errs []error
	for i := range d.sitesWanted() {
		p, ready, err := d.startSite(i)
		if err != nil {
			errs = append(errs, err)
			break
		}
		d.Sites = append(d.Sites, p)
		waits = append(waits, ready)
	}
	defer d.Out.Done()
	for i, p := range d.Sites {
		d.soFar("%d of %d resource agents are up", i, d.sitesWanted())
		errs = append(errs, p.await(ctx, waits[i]))
	}
	return errors.Join(errs...)
}

func (d *Market) startSite(i int) (*Process, *os.File, error) {
	site := d.replayed
	if d.Cores > 0 {
		site = d.here
	}
	name, cfg, err := site(i)
	if err != nil {
		return nil, nil, err
	}
	dir, err := d.AgentDir(name, config.Config{Resource: cfg})
	if err != nil {
		return nil, nil, err
	}
	var env []string
	if d.Bare {
		env = []string{node.BareEnv + "=1"}
	}
	return spawn(dir, d.Keep, env, "resource", "serve", "--dir", dir)
}

// replayed is one of the twenty resources.
func (d *Market) replayed(i int) (string, *config.Resource, error) {
	s := published.Resources()[i]
	log, base, err := d.siteLog(i)
	return s.Name, &config.Resource{
		Driver: "swf", SWF: config.SWF{Log: log, Base: base, Start: config.Instant(d.Begun.UTC().Truncate(time.Second))},
		StartPrice: strconv.Itoa(s.Start), MinPrice: strconv.Itoa(s.Min), Pay: d.Pay(),
		Properties: config.Properties{OS: "Linux", Arch: "x86_64", RAMPerCore: memory(s.Name)},
		Cancel:     config.Cancel{Before: new(config.Span)},
	}, err
}

// here is a site that runs programs on this machine, under the account of its owner.
func (d *Market) here(int) (string, *config.Resource, error) {
	owner, err := osuser.Current()
	if err != nil {
		return "", nil, err
	}
	return "here", &config.Resource{
		Driver: "local", Local: config.Local{Cores: d.Cores, Claims: filepath.Join(d.Dir, "claims")},
		StartPrice: "1", MinPrice: "1", Pay: d.Pay(), Lead: config.Span(time.Second),
		Jobs: &config.Jobs{
			Accept:   []string{"namespaces", "seccomp", "cgroup", "uids"},
			Accounts: []config.Account{{Agent: "*", User: owner.Username, Commands: true}},
		},
	}, nil
}

// sitesWanted is how many of the twenty resources take part.
func (d *Market) sitesWanted() int {
	if d.Cores > 0 {
		return 1
	}
	if d.Count == 0 {
		return len(published.Resources())
	}
	return d.Count
}

// Pay is how the agents of this market pay.
func (d *Market) Pay() []config.Pay {
	return []config.Pay{{Bank: string(d.Bank.Agent), Currency: currency}}
}

// Fund opens an account with money in it.
func (d *Market) Fund(ctx context.Context, id protocol.AgentID, name string) error {
	if err := Ask(ctx, d.Bank, control.OpenAccount, control.OpenAccountCall{Account: id, Name: name}, nil); err != nil {
		return err
	}
	return Ask(ctx, d.Bank, control.Credit, control.CreditCall{Account: name, Amount: credit, Ref: "demo"}, nil)
}

// openLogs reads the logs of --logs, to report faults, oddities and missing logs before any process
// starts.
func (d *Market) openLogs() error {
	logs, err := experiment.LoadLogs(d.Logs)
	if err != nil {
		return exit.Fail(exit.Usage, config.LogHint(err), "--logs: %w", err)
	}
	d.place = logs.Place
	if d.Logs != "" {
		for _, line := range logs.Told {
			d.say("%s", line)
		}
	}
	return nil
}

// siteLog is the log of a resource, and the second of it at which the market starts: a real log from
// --logs, or the synthetic one in the program.
func (d *Market) siteLog(i int) (path string, base int64, err error) {
	real, base := d.place(i)
	if real != "" {
		path, err = filepath.Abs(real)
		return path, base, err
	}
	name := published.Resources()[i].Name + ".swf.gz"
	b, err := published.Logs.ReadFile("swf/" + name)
	if err != nil {
		return "", 0, err
	}
	path = filepath.Join(d.Dir, name)
	return path, base, os.WriteFile(path, b, 0o600)
}

// openAccounts opens an account for every agent and credits the user's.
func (d *Market) openAccounts(ctx context.Context) error {
	for _, p := range d.Sites {
		if err := Ask(ctx, d.Bank, control.OpenAccount, control.OpenAccountCall{Account: p.Agent, Name: p.Name}, nil); err != nil {
			return err
		}
	}
	return d.Fund(ctx, d.User.Agent, d.User.Name)
}

// awaitMarket waits until the user agent has met every resource.
func (d *Market) awaitMarket(ctx context.Context) error {
	agent, err := d.User.call()
	if err != nil {
		return err
	}
	var known []control.ResourceLine
	defer d.Out.Done()
	err = poll(ctx, startTime, func() (bool, error) {
		err := control.Resources.Ask(ctx, agent, struct{}{}, &known)
		d.soFar("found %d of %d resources", len(known), d.sitesWanted())
		return len(known) == d.sitesWanted(), err
	})
	d.Out.Done()
	if errors.Is(err, errPatience) {
		return exit.Fail(exit.Unreachable, "", "only %d of %d resources found", len(known), d.sitesWanted())
	}
	if err != nil {
		return err
	}
	d.showFound(known)
	return d.writeRequest()
}

// writeRequest writes a request to try, which can be bought until tomorrow.
func (d *Market) writeRequest() error {
	job := Job{"try", []part{{256, 24 * time.Hour, 60}}}
	doc, err := job.Document(d.Begun)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.Dir, "request.xml"), doc.XML(), 0o644)
}

// memory is the memory per core, in MB, that a site's real machine had.
func memory(site string) int {
	real := map[string]int{"curie": 4096, "intrepid": 512, "ricc": 1536}
	return cmp.Or(real[strings.TrimRight(site, "0123456789")], 2048)
}
