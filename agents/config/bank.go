package config

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/exit"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// Enrol lets a bank certify newcomers that show the token of an invitation.
// Without it the bank certifies nobody.
type Enrol struct {
	Authority string `yaml:"authority"`          // directory of ca.pem and ca.key
	Lifetime  Span   `yaml:"lifetime,omitempty"` // of the certificates
}

// OnlyLocal reports whether only this machine can reach the addresses.
func OnlyLocal(listen []string) bool { return !slices.ContainsFunc(listen, isElsewhere) }

// Elsewhere returns the addresses that other machines can reach, or the whole list if none can be.
func Elsewhere(list []string) []string {
	if OnlyLocal(list) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(a string) bool { return !isElsewhere(a) })
}

func isElsewhere(a string) bool {
	return !strings.HasPrefix(a, "/ip4/127.") && !strings.HasPrefix(a, "/ip6/::1/")
}

const (
	LedgerName      = "ledger.db"
	FoundedName     = "init.finished" // what 'ramp bank init' was asked for, once it has finished
	CurrencyPattern = `^[A-Z]{3,8}$`
)

// CheckBank returns an error unless a configuration is a bank's and valid.
func (c *Config) CheckBank(path string) error {
	if c.Bank == nil || len(c.Bank.Currencies) == 0 {
		return exit.Fail(exit.Usage, c.KindHint("bank", "write 'bank: {currencies: [CPU]}'"), "configuration %s is not a bank's", path)
	}
	for i, cur := range c.Bank.Currencies {
		if !regexp.MustCompile(CurrencyPattern).MatchString(cur) {
			return exit.Fail(exit.Usage, "", "configuration %s: bank.currencies: %q: want 3..8 capital letters", path, cur)
		}
		if slices.Contains(c.Bank.Currencies[:i], cur) {
			return exit.Fail(exit.Usage, "", "configuration %s: bank.currencies: %q is there twice", path, cur)
		}
	}
	switch kind, where, _ := strings.Cut(c.Bank.Store, ":"); {
	case c.Bank.Store == "", (kind == "bbolt" || kind == "etcd") && where != "":
	default:
		return exit.Fail(exit.Usage, "", "configuration %s: bank.store %q: want bbolt:PATH or etcd:HOST,HOST", path, c.Bank.Store)
	}
	if d := time.Duration(c.Bank.Reports); d != 0 && (d < ledger.LeastReportWithin || d > protocol.ReportWithin) {
		return exit.Fail(exit.Usage, "", "configuration %s: bank.report_within: %s: want %s..%s", path, d, ledger.LeastReportWithin, protocol.ReportWithin)
	}
	return nil
}

// checkBank returns an error unless a configuration is a bank's and valid, and there is what
// it names.
func (c *Config) checkBank(path string) error {
	if err := c.CheckBank(path); err != nil {
		return err
	}
	if e := c.Bank.Enrol; e != nil {
		for _, name := range []string{"ca.pem", "ca.key"} {
			if file := filepath.Join(c.Path(e.Authority), name); !IsThere(file) {
				return exit.Fail(exit.Usage, "", "configuration %s: bank.enrol.authority: there is no %s", path, file)
			}
		}
	}
	if strings.HasPrefix(c.Bank.Store, "etcd:") {
		return nil
	}
	ledger := c.DataFile()
	if in := filepath.Dir(ledger); !IsThere(in) {
		return exit.Fail(exit.Usage, "", "configuration %s: bank.store: there is no directory %s", path, in)
	}
	return c.LedgerThere(ledger)
}

// LedgerThere returns an error if a ledger's file is missing although 'ramp bank init' made it.
func (c *Config) LedgerThere(file string) error {
	if IsThere(c.Path(FoundedName)) && !IsThere(file) {
		return exit.Fail(exit.Failed, "bring it back, or restore a backup: 'ramp bank restore'", "the ledger %s is missing", file)
	}
	return nil
}

// MirrorName is this machine's copy of a ledger in a cluster.
const MirrorName = "mirror.db"

const etcdPort = "2379"

// Endpoints adds etcd's port to hosts without one. It reports false if a host has no name or
// an invalid port.
func Endpoints(hosts []string) (list []string, ok bool) {
	for _, h := range hosts {
		if h = strings.TrimSpace(h); h == "" {
			return nil, false
		}
		e := endpoint(h)
		_, address, url := strings.Cut(e, "://")
		if !url {
			address = e
		}
		if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || !isPort(port)) {
			return nil, false
		}
		list = append(list, e)
	}
	return list, true
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// endpoint completes HOST with etcd's port.
func endpoint(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), etcdPort)
}

// AgentPlace names an agent's machine and directory for the other agents of its bank.
func AgentPlace(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return host + ":" + dir + " since " + time.Now().UTC().Format(time.RFC3339)
}
