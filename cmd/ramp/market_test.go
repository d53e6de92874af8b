package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/porttest"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// market is a market in a directory: an authority, a bank, a user and sellers,
// each with credential and configuration in a directory of its own.
type market struct {
	dir     string
	env     []string
	ca      *identity.CA
	ids     map[string]protocol.AgentID
	daemons map[string]*daemon
	sellers []string

	document string // that is being bought
	bought   int
}

// cores of a seller's machine.
const sellerCores = 64

// newMarket makes bank, user and the named sellers. Seller i asks 20+i credits
// per core-hour at first and 10 at least.
func newMarket(dir string, env []string, sellers ...string) (*market, error) {
	m := &market{dir: dir, env: env, ids: map[string]protocol.AgentID{}, daemons: map[string]*daemon{}}
	var err error
	if m.ca, err = identity.NewCA("test-ca", time.Now(), 24*time.Hour, rand.Reader); err != nil {
		return nil, err
	}
	key, err := m.ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	if err := writeFiles(filepath.Join(dir, "ca"), map[string][]byte{"ca.pem": m.ca.CertPEM(), "ca.key": key}); err != nil {
		return nil, err
	}
	bank := "bank: {currencies: [CPU], grace: 1s}\n"
	if err := m.agent("bank", bank); err != nil {
		return nil, err
	}
	pay := fmt.Sprintf("pay: [{bank: %s, currency: CPU}]", m.ids["bank"])
	if err := m.agent("user", "user: {"+pay+", hold: 15s, settle: 3s, daemon: false}\n"); err != nil {
		return nil, err
	}
	for i, name := range sellers {
		if err := m.seller(name, pay, i); err != nil {
			return nil, err
		}
	}
	return m, m.requests()
}

func (m *market) seller(name, pay string, i int) error {
	role := fmt.Sprintf("resource:\n  driver: swf\n  swf: {log: idle.swf, base: 1000}\n  start_price: \"%d\"\n  minimum_price: \"%d\"\n  rounds: 3\n"+
		"  %s\n  properties: {os: LINUX, architecture: x86_64}\n  cancellation: {before: 0s}\n", 20+i, 10, pay)
	if err := m.agent(name, role); err != nil {
		return err
	}
	log := fmt.Sprintf("; Version: 2.2\n; Computer: %s\n; MaxProcs: %d\n1 0 0 10 1 -1 -1 1 10 -1 1 -1 -1 -1 1 -1 -1 -1\n", name, sellerCores)
	return os.WriteFile(filepath.Join(m.dir, name, "idle.swf"), []byte(log), 0o600)
}

// agent makes the directory of an agent, with an address that stays its own.
func (m *market) agent(name, role string) error {
	port, err := porttest.Free()
	if err != nil {
		return err
	}
	if err := m.credential(name, time.Now(), time.Hour); err != nil {
		return err
	}
	conf := fmt.Sprintf("listen: [/ip4/127.0.0.1/tcp/%d]\nheartbeat: 500ms\n%s", port, role)
	return os.WriteFile(filepath.Join(m.dir, name, "config.yaml"), []byte(conf), 0o600)
}

// credential issues one for the agent of that name.
func (m *market) credential(name string, from time.Time, lifetime time.Duration) error {
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		return err
	}
	cert, err := m.ca.Issue(name, key.Public(), from, lifetime)
	if err != nil {
		return err
	}
	keyPEM, err := identity.KeyPEM(key)
	if err != nil {
		return err
	}
	cred, err := identity.Parse(cert, keyPEM)
	if err != nil {
		return err
	}
	m.ids[name] = cred.ID
	return writeFiles(filepath.Join(m.dir, name), map[string][]byte{"agent.pem": cert, "agent.key": keyPEM, "ca.pem": m.ca.CertPEM()})
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// requests writes requests to buy: job.xml one machine can meet, three.xml needs
// three machines, wide.xml needs all of one, dear.xml is below every price, huge.xml above every size.
func (m *market) requests() error {
	job := requestXML("job", 16, 60)
	for name, parts := range map[string][]string{
		"job.xml": {job}, "three.xml": {requestXML("three", 48, 60), requestXML("three", 48, 60), requestXML("three", 48, 60)},
		"small.xml": {requestXML("small", sellerCores/8, 60)}, // within a newcomer's allowance: no voucher is asked for
		"dear.xml":  {requestXML("dear", 16, 1)}, "wide.xml": {requestXML("wide", sellerCores, 60)}, "huge.xml": {requestXML("huge", 1000, 60)},
	} {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(document(parts...)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func document(requests ...string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ" xmlns:r="urn:ramp:rfql:2">
` + strings.Join(requests, "") + "</RequestForQuotation>\n"
}

// requestXML asks for cores for an hour, at some time in the two days that begin
// an hour from now: there is room for many purchases, one after the other.
func requestXML(name string, cores, price int) string {
	from := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	end := from.Add(48 * time.Hour)
	return fmt.Sprintf(`  <Request r:name="%s">
    <CPUHourCost>%d</CPUHourCost>
    <EndDate>%s</EndDate><EndTime>%s</EndTime>
    <StartDate>%s</StartDate><StartTime>%s</StartTime>
    <WallTime>60</WallTime>
    <Cores><TotalCores>%d</TotalCores></Cores>
  </Request>
`, name, price, end.Format(time.DateOnly), end.Format("15:04:05Z"), from.Format(time.DateOnly), from.Format("15:04:05Z"), cores)
}

// path is a path in the market's directory.
func (m *market) path(name string) string { return filepath.Join(m.dir, name) }

// kind is the command of an agent.
func kind(name string) string {
	if name == "bank" || name == "user" {
		return name
	}
	return "resource"
}

// serve starts the daemon of an agent. All others join the market by the bank.
func (m *market) serve(name string) error {
	d, err := startDaemon(m.path(name+".log"), m.env, kind(name), "serve", "--dir", m.path(name))
	if err != nil {
		return err
	}
	m.daemons[name] = d
	if name == "bank" {
		return m.invite(d.ready.Addresses)
	}
	return nil
}

// invite tells every other agent the bank's addresses, once.
func (m *market) invite(addresses []string) error {
	for name := range m.ids {
		path := filepath.Join(m.path(name), "config.yaml")
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name == "bank" || strings.Contains(string(b), "bootstrap:") {
			continue
		}
		b = fmt.Appendf(b, "bootstrap: [%s]\n", strings.Join(addresses, ", "))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// endOf ends every daemon that still runs. What those that had ended said last is told
// of a test that failed.
func (m *market) endOf(t *testing.T) {
	for name, d := range m.daemons {
		select {
		case <-d.ended:
			if t.Failed() {
				t.Logf("%s has ended (%v):\n%s", name, d.err, d.lastLines())
			}
		default:
		}
	}
	m.end()
}

// end ends every daemon that still runs.
func (m *market) end() {
	for _, d := range m.daemons {
		d.kill()
	}
}
