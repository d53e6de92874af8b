package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// configName is the configuration's name in an agent's directory.
const configName = "config.yaml"

// config is an agent's configuration file. Paths in it are relative to it.
type config struct {
	Certificate string   `yaml:"certificate"` // chain, leaf first
	Key         string   `yaml:"key"`
	Trust       string   `yaml:"trust"`             // trust anchors
	Revoked     string   `yaml:"revoked,omitempty"` // revocation lists; the file may be absent
	Listen      []string `yaml:"listen,omitempty"`
	Bootstrap   []string `yaml:"bootstrap,omitempty"`
	MDNS        bool     `yaml:"mdns,omitempty"` // agents of this network find another
	Heartbeat   span     `yaml:"heartbeat,omitempty"`

	Monitor string    `yaml:"monitor,omitempty"` // loopback address for /metrics and /healthz; none: only on the control socket
	Log     logConfig `yaml:"log,omitempty"`

	User     *userConfig     `yaml:"user,omitempty"`
	Resource *resourceConfig `yaml:"resource,omitempty"`
	Bank     *bankConfig     `yaml:"bank,omitempty"`

	dir string // of the file
}

// userConfig is what a user agent may set.
type userConfig struct {
	Pay    []payConfig `yaml:"pay,omitempty"` // banks to pay with, in order of preference
	Hold   span        `yaml:"hold,omitempty"`
	Settle span        `yaml:"settle,omitempty"`
	// CallAtMost is up to how many sellers are all called one by one.
	CallAtMost int `yaml:"call_at_most,omitempty"`
	// ResponseBudget is how many of more than that are asked in a round.
	ResponseBudget int `yaml:"response_budget,omitempty"`
	// Mode is when purchases are paid; none: as the bank and most sellers offer.
	Mode string `yaml:"mode,omitempty"`
	// AskUsage leaves usage records to the owner: see 'ramp user dispute'.
	AskUsage bool `yaml:"ask_usage,omitempty"`
}

// payConfig is a bank and a currency.
type payConfig struct {
	Bank     string `yaml:"bank" json:"bank"`
	Currency string `yaml:"currency" json:"currency"`
}

// bankConfig is what a bank may set.
type bankConfig struct {
	Currencies []string    `yaml:"currencies"`
	Grace      span        `yaml:"grace,omitempty"`
	Reports    span        `yaml:"report_within,omitempty"`
	Store      string      `yaml:"store,omitempty"` // bbolt:PATH or etcd:HOST,HOST
	Etcd       *etcdConfig `yaml:"etcd,omitempty"`
	// Enrol lets the bank certify newcomers with an invitation's token.
	Enrol *enrolConfig `yaml:"enrol,omitempty"`
}

// etcdConfig is how a bank proves to an etcd cluster who it is, and the cluster
// to the bank.
type etcdConfig struct {
	Anchors     string `yaml:"anchors"`               // of the cluster's certificates
	Certificate string `yaml:"certificate,omitempty"` // for the cluster; none: it asks for none
	Key         string `yaml:"key,omitempty"`
}

// span is a duration in a configuration: "90s", "10m".
type span time.Duration

// UnmarshalYAML reads a duration.
func (s *span) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 {
		return fmt.Errorf("line %d: %q is no duration: want one such as 90s or 10m", n.Line, n.Value)
	}
	*s = span(d)
	return nil
}

// MarshalYAML writes a duration.
func (s span) MarshalYAML() (any, error) { return time.Duration(s).String(), nil }

// instant is a time in a configuration: "2026-11-22T18:00:00Z".
type instant time.Time

// UnmarshalYAML reads a time.
func (i *instant) UnmarshalYAML(n *yaml.Node) error {
	t, err := time.Parse(time.RFC3339, n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is no time: want one such as 2026-11-22T18:00:00Z", n.Line, n.Value)
	}
	*i = instant(t)
	return nil
}

// MarshalYAML writes a time.
func (i instant) MarshalYAML() (any, error) { return time.Time(i).Format(time.RFC3339), nil }

// IsZero leaves out a time that is not said.
func (i instant) IsZero() bool { return time.Time(i).IsZero() }

// configHint says how a directory becomes an agent's.
const configHint = "give the agent's directory with --dir DIR; 'ramp user init', 'ramp resource init' and 'ramp bank init' make one"

// readConfig reads a configuration file; unknown keys are refused with their line.
func readConfig(path string) (*config, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitUsage, configHint, "no configuration at %s", path)
	}
	if err != nil {
		return nil, fail(exitUsage, "an agent is its owner's: is this the right account?", "read configuration: %w", err)
	}
	var c config
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		words := strings.Join(strings.Fields(yamlWords(err)), " ") // a value that is quoted may have several lines
		return nil, fail(exitUsage, "docs/OPERATIONS.md lists every key", "configuration %s: %s", path, words)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fail(exitUsage, "", "configuration %s: want one document, without '---' in it", path)
	}
	c.dir = filepath.Dir(path)
	c.defaults()
	return &c, nil
}

// yamlWords is an error of the YAML reader in one line, with the names of keys
// in place of those of Go types.
func yamlWords(err error) string {
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	unknown := regexp.MustCompile(`field (.*) not found in type .*`)
	wrong := regexp.MustCompile(`(?s)cannot unmarshal !!(\S+)(.*) into .*`)
	lines := make([]string, len(typed.Errors))
	for i, line := range typed.Errors {
		line = unknown.ReplaceAllString(line, `unknown key "$1"`)
		lines[i] = wrong.ReplaceAllString(line, "a $1$2 where another kind of value is wanted")
	}
	return strings.Join(lines, "; ")
}

func (c *config) defaults() {
	set := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	set(&c.Certificate, "agent.pem")
	set(&c.Key, "agent.key")
	set(&c.Trust, "ca.pem")
	set(&c.Revoked, "revoked.pem")
	if len(c.Listen) == 0 {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	}
}

// path is a path of the configuration, from where the program runs.
func (c *config) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.dir, p)
}

// write saves the configuration in a directory.
func (c *config) write(dir string) error {
	b, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, configName), b, 0o600)
}

// credential reads who the agent is.
func (c *config) credential() (*identity.Credential, error) {
	cert, err := os.ReadFile(c.path(c.Certificate))
	if err != nil {
		return nil, fail(exitUsage, "'ramp ca issue' makes a certificate and key", "certificate: %w", err)
	}
	key, err := os.ReadFile(c.path(c.Key))
	if err != nil {
		return nil, fail(exitUsage, "", "key: %w", err)
	}
	cred, err := identity.Parse(cert, key)
	if errors.Is(err, identity.ErrMismatch) {
		return nil, fail(exitUsage, "put back the key that the certificate was made for, or have this one certified ('ramp ca request')",
			"%s and %s: %w", c.path(c.Certificate), c.path(c.Key), err)
	}
	if err != nil {
		return nil, fail(exitUsage, "", "credential %s and %s: %w", c.path(c.Certificate), c.path(c.Key), err)
	}
	return cred, nil
}

// trust reads whom the agent trusts.
func (c *config) trust() (*identity.Trust, error) {
	anchors, err := os.ReadFile(c.path(c.Trust))
	if err != nil {
		return nil, fail(exitUsage, "", "trust anchors: %w", err)
	}
	crls, err := os.ReadFile(c.path(c.Revoked))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitUsage, "", "revocation list: %w", err)
	}
	t, err := identity.NewTrust(anchors, crls)
	if err != nil {
		return nil, fail(exitUsage, "", "trust of %s: %w", c.dir, err)
	}
	return t, nil
}

// payTerms are the banks and currencies of a list in the configuration.
func payTerms(key string, pay []payConfig) ([]protocol.Terms, error) {
	var list []protocol.Terms
	for i, p := range pay {
		id := protocol.AgentID(p.Bank)
		if err := id.Validate(); err != nil {
			return nil, fail(exitUsage, "'ramp ca show' prints the agent of a certificate", "configuration: %s[%d].bank: %w", key, i, err)
		}
		if !regexp.MustCompile(currencyPattern).MatchString(p.Currency) {
			return nil, fail(exitUsage, "", "configuration: %s[%d].currency %q: want the currency to pay in, 3..8 capital letters", key, i, p.Currency)
		}
		list = append(list, protocol.Terms{Bank: id, Currency: p.Currency})
	}
	return list, nil
}

// agentDir is where an agent of a kind keeps its state: --dir, else RAMP_DIR,
// else below the user's data directory.
func agentDir(flag, kind string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if d := os.Getenv("RAMP_DIR"); d != "" {
		return d, nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "ramp", kind), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fail(exitUsage, "give --dir DIR", "no home directory: %w", err)
	}
	return filepath.Join(home, ".local", "share", "ramp", kind), nil
}
