package command

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ramp/agents/sim/experiment"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/testdata"
)

// bringUp makes and starts every agent, the bank first: its address is the one
// by which all others join.
func (d *demo) bringUp(ctx context.Context) error {
	ca, err := d.newAuthority()
	if err != nil {
		return err
	}
	d.tell("starting one bank, %d resource agents and one user agent in %s", d.sitesWanted(), d.dir)
	if err := d.startBank(ctx, ca); err != nil {
		return err
	}
	if err := d.startSites(ctx, ca, d.pay()); err != nil {
		return err
	}
	if err := d.startUser(ctx, ca, d.pay()); err != nil {
		return err
	}
	if err := d.openAccounts(ctx); err != nil {
		return err
	}
	return d.awaitMarket(ctx)
}

// newAuthority makes the market's own authority.
func (d *demo) newAuthority() (*identity.CA, error) {
	ca, err := identity.NewCA("demo-ca", time.Now(), caLifetime, rand.Reader)
	if err != nil {
		return nil, err
	}
	return ca, writeCA(filepath.Join(d.dir, "ca"), ca)
}

// agentDir makes the directory of an agent: credential and configuration.
func (d *demo) agentDir(ca *identity.CA, name string, cfg config) (string, error) {
	dir := filepath.Join(d.dir, name)
	if _, err := issue(ca, name, leafLifetime, dir); err != nil {
		return "", err
	}
	cfg.Certificate, cfg.Key, cfg.Trust = "agent.pem", "agent.key", caCert
	if d.bank != nil {
		cfg.Bootstrap = d.bank.Addresses
	}
	return dir, cfg.write(dir)
}

func (d *demo) startBank(ctx context.Context, ca *identity.CA) error {
	cfg := config{Bank: &bankConfig{Currencies: []string{demoCurrency}, Enrol: &enrolConfig{Authority: filepath.Join("..", "ca")}}}
	dir, err := d.agentDir(ca, "bank", cfg)
	if err != nil {
		return err
	}
	p, ready, err := spawn(dir, d.keep, nil, "bank", "serve", "--dir", dir)
	if err != nil {
		return err
	}
	d.bank = p
	if err := p.await(ctx, ready); err != nil {
		return err
	}
	return settle(dir, p.Addresses)
}

// settle keeps an agent where it listens now, also after a restart: it is where the
// others find the market.
func settle(dir string, addresses []string) error {
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return err
	}
	cfg.Listen = nil
	for _, a := range addresses {
		host, _, _ := strings.Cut(a, "/p2p/")
		cfg.Listen = append(cfg.Listen, host)
	}
	return cfg.write(dir)
}

// Who is let in by the demonstration's invitation, and with what.
const (
	demoUses    = 100
	demoExpires = 7 * 24 * time.Hour
	guestCredit = 1_000_000 * protocol.Credit
)

// invite leaves an invitation in the directory of a market that stays up.
func (d *demo) invite(ctx context.Context) error {
	bank, err := d.bank.call()
	if err != nil {
		return err
	}
	q := inviteCall{
		Uses: demoUses, Expires: time.Now().Add(demoExpires).Truncate(time.Second), Credit: guestCredit, Currency: demoCurrency,
		Market: "demo", Ref: "demo",
	}
	var a inviteAnswer
	if err := bank.call(ctx, "POST", "/v1/invite", q, &a); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, invitationName), []byte(a.Invitation), 0o600)
}

// startSites starts the twenty resource agents side by side.
func (d *demo) startSites(ctx context.Context, ca *identity.CA, pay []payConfig) error {
	var waits []*os.File
	var errs []error
	for i := range d.sitesWanted() {
		p, ready, err := d.startSite(ca, i, pay)
		if err != nil {
			errs = append(errs, err)
			break
		}
		d.sites = append(d.sites, p)
		waits = append(waits, ready)
	}
	show := d.onTheWay()
	defer show.end()
	for i, p := range d.sites {
		show.soFar("%d of %d resource agents are up", i, d.sitesWanted())
		errs = append(errs, p.await(ctx, waits[i]))
	}
	return errors.Join(errs...)
}

func (d *demo) startSite(ca *identity.CA, i int, pay []payConfig) (*process, *os.File, error) {
	s := demoSites()[i]
	log, base, err := d.siteLog(i)
	if err != nil {
		return nil, nil, err
	}
	dir, err := d.agentDir(ca, s.Name, config{Resource: &resourceConfig{
		Driver: "swf", SWF: swfConfig{Log: log, Base: base, Start: instant(d.begun.UTC().Truncate(time.Second))},
		StartPrice: strconv.Itoa(s.Start), MinPrice: strconv.Itoa(s.Min), Pay: pay,
		Properties: propertiesConfig{OS: "Linux", Arch: "x86_64", RAMPerCore: demoMemory(s.Name)},
		Cancel:     cancelConfig{Before: new(span)},
	}})
	if err != nil {
		return nil, nil, err
	}
	if d.bare {
		return spawn(dir, d.keep, []string{bareEnv + "=1"}, "resource", "serve", "--dir", dir)
	}
	return spawn(dir, d.keep, nil, "resource", "serve", "--dir", dir)
}

// sitesWanted is how many of the twenty resources take part.
func (d *demo) sitesWanted() int {
	if d.count == 0 {
		return len(demoSites())
	}
	return d.count
}

// pay is how the agents of this market pay.
func (d *demo) pay() []payConfig {
	return []payConfig{{Bank: string(d.bank.Agent), Currency: demoCurrency}}
}

// authority is the market's own.
func (d *demo) authority() (*identity.CA, error) {
	cert, err := os.ReadFile(filepath.Join(d.dir, "ca", caCert))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(d.dir, "ca", caKey))
	if err != nil {
		return nil, err
	}
	return identity.ParseCA(cert, key)
}

// fund opens an account with money in it.
func (d *demo) fund(ctx context.Context, id protocol.AgentID, name string) error {
	bank, err := d.bank.call()
	if err != nil {
		return err
	}
	if err := bank.call(ctx, "POST", "/v1/account", openAccountCall{Account: id, Name: name}, nil); err != nil {
		return err
	}
	return bank.call(ctx, "POST", "/v1/credit", creditCall{Account: name, Amount: demoCredit, Ref: "demo"}, nil)
}

// openLogs reads the logs of --logs, so that what is wrong with them is told
// before any process is started, and what is odd or missing as well.
func (d *demo) openLogs() error {
	logs, err := experiment.LoadLogs(d.logs)
	if err != nil {
		return fail(exitUsage, logHint(err), "--logs: %w", err)
	}
	d.place = logs.Place
	if d.logs != "" {
		for _, line := range logs.Told {
			d.say("%s", line)
		}
	}
	return nil
}

// siteLog is the log of a resource and the second at which the market starts in
// it: the real one of --logs, or the synthetic one that comes with the program.
func (d *demo) siteLog(i int) (path string, base int64, err error) {
	real, base := d.place(i)
	if real != "" {
		path, err = filepath.Abs(real)
		return path, base, err
	}
	name := demoSites()[i].Name + ".swf.gz"
	b, err := testdata.Logs.ReadFile("swf/" + name)
	if err != nil {
		return "", 0, err
	}
	path = filepath.Join(d.dir, name)
	return path, base, os.WriteFile(path, b, 0o600)
}

func (d *demo) startUser(ctx context.Context, ca *identity.CA, pay []payConfig) error {
	dir, err := d.agentDir(ca, "user", config{User: &userConfig{Pay: pay}})
	if err != nil {
		return err
	}
	p, ready, err := spawn(dir, d.keep, nil, "user", "serve", "--dir", dir)
	if err != nil {
		return err
	}
	d.user = p
	return p.await(ctx, ready)
}

// openAccounts opens an account for every agent and credits the user's.
func (d *demo) openAccounts(ctx context.Context) error {
	bank, err := d.bank.call()
	if err != nil {
		return err
	}
	for _, p := range d.sites {
		if err := bank.call(ctx, "POST", "/v1/account", openAccountCall{Account: p.Agent, Name: p.name}, nil); err != nil {
			return err
		}
	}
	return d.fund(ctx, d.user.Agent, d.user.name)
}

// awaitMarket waits until the user agent has met every resource.
func (d *demo) awaitMarket(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	agent, err := d.user.call()
	if err != nil {
		return err
	}
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	var known []resourceLine
	show := d.onTheWay()
	defer show.end()
	for {
		if err := agent.call(ctx, "POST", "/v1/resources", nil, &known); err != nil {
			return err
		}
		if len(known) == d.sitesWanted() {
			show.end()
			d.tellFound(known)
			return d.writeRequest()
		}
		show.soFar("found %d of %d resources", len(known), d.sitesWanted())
		select {
		case <-t.C:
		case <-ctx.Done():
			return fail(exitUnreachable, "", "only %d of %d resources found", len(known), d.sitesWanted())
		}
	}
}

// writeRequest leaves a request to try in the directory: it can be bought until
// tomorrow.
func (d *demo) writeRequest() error {
	job := demoJob{"try", []demoPart{{256, 24 * time.Hour, 60}}}
	doc, err := job.document(d.begun)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, "request.xml"), doc.XML(), 0o644)
}

// demoMemory is the memory of a core, in MB, that the machine of a site had.
func demoMemory(site string) int {
	switch strings.TrimRight(site, "0123456789") {
	case "curie":
		return 4096
	case "intrepid":
		return 512
	case "ricc":
		return 1536
	}
	return 2048
}
