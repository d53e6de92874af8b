// Package config reads, checks and writes the configuration of the three kinds of agent,
// and converts it for roles and batch drivers. It starts nothing.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/identity"
)

// Meant refuses the configuration of another kind of agent than a command is for. It
// accepts a configuration that cannot be read or names no kind: the caller reports that.
func Meant(path, kind string) error {
	c, err := Read(path)
	if err != nil || c.Kind() == kind || c.kindless() {
		return nil
	}
	return exit.Fail(exit.Usage, c.KindHint(kind, ""), "configuration %s is a %s's, not a %s's", path, c.Kind(), kind)
}

// KindHint is a hint where an agent of a kind is needed: to give its directory if this one
// belongs to another kind, otherwise lacks.
func (c *Config) KindHint(want, lacks string) string {
	if is := c.Kind(); is != want && !c.kindless() {
		return "this directory is a " + is + "'s: give that of a " + want + " with --dir DIR ('ramp status' lists agents)"
	}
	return lacks
}

func (c *Config) kindless() bool { return c.Bank == nil && c.Resource == nil && c.User == nil }

// LedgerFile is the path of a bank's ledger, if it is in a file.
func (c *Config) LedgerFile() (string, error) {
	kind, where, _ := strings.Cut(c.Bank.Store, ":")
	switch {
	case c.Bank.Store == "":
		return filepath.Join(c.Dir, LedgerName), nil
	case kind == "bbolt" && where != "":
		return c.Path(where), nil
	}
	return "", exit.Fail(exit.Usage, "docs/CLUSTER.md describes ledgers in a cluster", "the ledger is not in a file: bank.store is %q", c.Bank.Store)
}

// IsThere reports whether something exists at a path.
func IsThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ReplaceFile writes a file durably. Readers, and a crash, see the old file or the new one. A device, such as
// /dev/null, or a pipe is written to.
func ReplaceFile(path string, b []byte, mode os.FileMode) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return os.WriteFile(path, b, mode)
	}
	err := renameio.WriteFile(path, b, mode, renameio.WithTempDir(filepath.Dir(path)))
	var temporary *os.PathError
	if errors.As(err, &temporary) {
		temporary.Path = path // nobody knows the temporary file
	}
	if err != nil {
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	return nil
}

// Name is the configuration's name in an agent's directory.
const Name = "config.yaml"

// Config is an agent's configuration file. Paths in it are relative to it.
type Config struct {
	Certificate string   `yaml:"certificate"` // chain, leaf first
	Key         string   `yaml:"key"`
	Trust       string   `yaml:"trust"`             // trust anchors
	Revoked     string   `yaml:"revoked,omitempty"` // revocation lists; the file may be absent
	Listen      []string `yaml:"listen,omitempty"`
	Announce    []string `yaml:"announce,omitempty"` // addresses that others receive, instead of the agent's own
	Bootstrap   []string `yaml:"bootstrap,omitempty"`
	MDNS        bool     `yaml:"mdns,omitempty"` // find agents of the local network
	Heartbeat   Span     `yaml:"heartbeat,omitempty"`
	Index       bool     `yaml:"index,omitempty"` // keep an index of sellers for others

	Monitor string `yaml:"monitor,omitempty"` // loopback address for /metrics and /healthz; by default only on the control socket
	Log     Log    `yaml:"log,omitempty"`
	Web     Web    `yaml:"web,omitempty"`

	User     *User     `yaml:"user,omitempty" live:""`
	Resource *Resource `yaml:"resource,omitempty"`
	Bank     *Bank     `yaml:"bank,omitempty"`

	Dir string `yaml:"-"` // of the file
}

// Web is where a proxy serves the agent's pages. The zero value: there is no proxy.
type Web struct {
	Origin string `yaml:"origin,omitempty"` // such as https://hpc.example.org
	Prefix string `yaml:"prefix,omitempty"` // of the paths, such as /ramp/ann
}

// Check refuses what no proxy can mean.
func (w Web) Check() error {
	if u, err := url.Parse(w.Origin); w.Origin != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || w.Origin != u.Scheme+"://"+u.Host) {
		return exit.Fail(exit.Usage, "", "web.origin %q: want one such as https://hpc.example.org", w.Origin)
	}
	if w.Prefix != "" && (w.Prefix != path.Clean(w.Prefix) || !strings.HasPrefix(w.Prefix, "/") || strings.ContainsAny(w.Prefix, "?#%; \\\"<>`") || w.Prefix == "/") {
		return exit.Fail(exit.Usage, "", "web.prefix %q: want a path such as /ramp/ann, without a slash at its end", w.Prefix)
	}
	return nil
}

// User is the section of a user agent.
type User struct {
	Pay    []Pay `yaml:"pay,omitempty"` // banks to pay with, the most widely accepted first, then in this order
	Hold   Span  `yaml:"hold,omitempty"`
	Settle Span  `yaml:"settle,omitempty"`
	// CallAtMost is the largest number of sellers that are all called individually.
	CallAtMost int `yaml:"call_at_most,omitempty"`
	// ResponseBudget is how many sellers are asked per round if there are more.
	ResponseBudget int `yaml:"response_budget,omitempty"`
	// Mode is when purchases are paid; by default as the bank and most sellers offer.
	Mode string `yaml:"mode,omitempty"`
	// AskUsage lets the owner judge usage records: see 'ramp user dispute'.
	AskUsage bool `yaml:"ask_usage,omitempty"`
	// Daemon lets commands start the agent's daemon if none runs; the default is true.
	Daemon *bool `yaml:"daemon,omitempty"`
}

// StartsDaemon reports whether commands start the agent's daemon if none runs.
func (c *Config) StartsDaemon() bool {
	return c.Kind() == "user" && (c.User == nil || c.User.Daemon == nil || *c.User.Daemon)
}

// Pay is a bank and a currency.
type Pay struct {
	Bank     string `yaml:"bank" json:"bank"`
	Currency string `yaml:"currency" json:"currency"`
}

// Bank is the section of a bank.
type Bank struct {
	Currencies []string `yaml:"currencies"`
	Grace      Span     `yaml:"grace,omitempty"`
	Reports    Span     `yaml:"report_within,omitempty"`
	Store      string   `yaml:"store,omitempty"` // bbolt:PATH or etcd:HOST,HOST
	Etcd       *Etcd    `yaml:"etcd,omitempty"`
	// Enrol lets the bank certify newcomers with an invitation's token.
	Enrol *Enrol `yaml:"enrol,omitempty"`
}

// Etcd has the certificates by which a bank and an etcd cluster authenticate each other.
type Etcd struct {
	Anchors     string `yaml:"anchors"`               // of the cluster's certificates
	Certificate string `yaml:"certificate,omitempty"` // for the cluster, if it asks for one
	Key         string `yaml:"key,omitempty"`
}

// Span is a duration in a configuration: "90s", "10m".
type Span time.Duration

// UnmarshalYAML reads a duration.
func (s *Span) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 {
		return fmt.Errorf("line %d: %q is not a duration: want one such as 90s or 10m", n.Line, n.Value)
	}
	*s = Span(d)
	return nil
}

// MarshalYAML writes a duration.
func (s Span) MarshalYAML() (any, error) { return time.Duration(s).String(), nil }

// Instant is a time in a configuration: "2026-11-22T18:00:00Z".
type Instant time.Time

// UnmarshalYAML reads a time.
func (i *Instant) UnmarshalYAML(n *yaml.Node) error {
	t, err := time.Parse(time.RFC3339, n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is not a time: want one such as 2026-11-22T18:00:00Z", n.Line, n.Value)
	}
	*i = Instant(t)
	return nil
}

// MarshalYAML writes a time.
func (i Instant) MarshalYAML() (any, error) { return time.Time(i).Format(time.RFC3339), nil }

// IsZero leaves out a time that is not set.
func (i Instant) IsZero() bool { return time.Time(i).IsZero() }

// configHint says how to make an agent's directory.
const configHint = "give the agent's directory with --dir DIR; 'ramp user init', 'ramp resource init' and 'ramp bank init' make one"

// Read reads a configuration file. It refuses unknown keys, naming their line.
func Read(path string) (*Config, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Fail(exit.Usage, configHint, "no configuration at %s", path)
	}
	if err != nil {
		hint := "only its owner can read an agent's files: is this the right account?"
		if !errors.Is(err, fs.ErrPermission) {
			hint = exit.PlaceHint(err)
		}
		return nil, exit.Fail(exit.Usage, hint, "read configuration: %w", err)
	}
	var c Config
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil {
		words := strings.Join(strings.Fields(YAMLError(b, err)), " ") // a quoted value may have several lines
		return nil, exit.Fail(exit.Usage, "docs/OPERATIONS.md lists every key", "configuration %s: %s", path, words)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, exit.Fail(exit.Usage, "", "configuration %s: want one document, without '---'", path)
	}
	key, err := CutKey(b, &c)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "configuration %s: %w", path, err)
	}
	if key != "" {
		return nil, exit.Fail(exit.Usage, "docs/OPERATIONS.md lists every key", "configuration %s: %s: want a whole number", path, key)
	}
	c.Dir = filepath.Dir(path)
	c.Defaults()
	return &c, nil
}

// CutKey names a key whose number was cut to a whole one, which the YAML reader does without a word.
func CutKey(text []byte, c any) (string, error) {
	var want, got any
	b, err := yaml.Marshal(c)
	if err = errors.Join(err, yaml.Unmarshal(text, &want), yaml.Unmarshal(b, &got)); err != nil {
		return "", err
	}
	return cut("", want, got), nil
}

func cut(key string, want, got any) (first string) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k := range w {
			if in := cut(strings.TrimPrefix(key+"."+k, "."), w[k], g[k]); in != "" && (first == "" || in < first) {
				first = in
			}
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			if in := cut(fmt.Sprintf("%s[%d]", key, i), w[i], g[i]); in != "" {
				return in
			}
		}
	case float64:
		if _, whole := got.(int); w != math.Trunc(w) && (whole || got == nil) {
			return key
		}
	}
	return first
}

// YAMLError is an error of the YAML reader in one line. It names keys of the text instead of Go types.
func YAMLError(text []byte, err error) string {
	var typed *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return "it is empty"
	case !errors.As(err, &typed):
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	unknown := regexp.MustCompile(`field (.*) not found in type .*`)
	wrong := regexp.MustCompile("(?s)^line (\\d+): cannot unmarshal (!!\\S+)(?: `(.*?)(?:\\.\\.\\.)?`)? into (.*)")
	var root yaml.Node
	_ = yaml.Unmarshal(text, &root) // it was read before
	lines := make([]string, len(typed.Errors))
	for i, line := range typed.Errors {
		lines[i] = unknown.ReplaceAllString(line, `unknown key "$1"`)
		if m := wrong.FindStringSubmatch(line); m != nil {
			key := keyOf(&root, "", func(n *yaml.Node) bool {
				return strconv.Itoa(n.Line) == m[1] && n.ShortTag() == m[2] && strings.HasPrefix(n.Value, m[3])
			})
			lines[i] = strings.ReplaceAll(fmt.Sprintf("line %s: %s: want %s", m[1], key, wanted(m[4])), ": : ", ": ")
		}
	}
	return strings.Join(lines, "; ")
}

// keyOf is the path of keys to the first value that is meant.
func keyOf(n *yaml.Node, key string, meant func(*yaml.Node) bool) string {
	if key != "" && meant(n) {
		return key
	}
	for i, child := range n.Content {
		under := key
		if n.Kind == yaml.MappingNode {
			under = strings.TrimPrefix(key+"."+n.Content[i&^1].Value, ".")
		}
		if found := keyOf(child, under, meant); found != "" && (n.Kind != yaml.MappingNode || i%2 == 1) {
			return found
		}
	}
	return ""
}

// wanted is what a value of a Go type looks like.
func wanted(kind string) string {
	if strings.HasPrefix(kind, "[]") {
		return "a list"
	}
	kinds := map[string]string{"bool": "true or false", "int": "a whole number", "uint": "a whole number", "float": "a number", "string": "a text", "time.Duration": "a duration such as 90s", "sim.Range": "{least: A, most: B}", "sim.Span": "{least: A, most: B}"}
	return cmp.Or(kinds[strings.TrimRight(strings.TrimPrefix(kind, "*"), "0123456789")], "another kind of value")
}

func (c *Config) Defaults() {
	c.Certificate = cmp.Or(c.Certificate, "agent.pem")
	c.Key = cmp.Or(c.Key, "agent.key")
	c.Trust = cmp.Or(c.Trust, "ca.pem")
	c.Revoked = cmp.Or(c.Revoked, "revoked.pem")
	if len(c.Listen) == 0 {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	}
}

// Path resolves a path of the configuration.
func (c *Config) Path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.Dir, p)
}

// Write saves the configuration in a directory.
func (c *Config) Write(dir string) error {
	b, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	return ReplaceFile(filepath.Join(dir, Name), b, 0o600)
}

// Credential reads the agent's certificate and key.
func (c *Config) Credential() (*identity.Credential, error) {
	cert, err := os.ReadFile(c.Path(c.Certificate))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "'ramp ca issue' makes a certificate and key", "certificate: %w", err)
	}
	key, err := os.ReadFile(c.Path(c.Key))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "key: %w", err)
	}
	cred, err := identity.Parse(cert, key)
	if errors.Is(err, identity.ErrMismatch) {
		return nil, exit.Fail(exit.Usage, "restore the key of the certificate, or have this one certified ('ramp ca request')",
			"%s and %s: %w", c.Path(c.Certificate), c.Path(c.Key), err)
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "credential %s and %s: %w", c.Path(c.Certificate), c.Path(c.Key), err)
	}
	return cred, nil
}

// TrustAnchors reads the trust anchors and the revocation lists. unsaved are other lists (PEM)
// that agents have passed on.
func (c *Config) TrustAnchors(unsaved ...[]byte) (*identity.Trust, error) {
	anchors, err := os.ReadFile(c.Path(c.Trust))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "trust anchors: %w", err)
	}
	crls, err := readLists(c.lists()...)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "revocation list: %w", err)
	}
	heard, err := readLists(filepath.Join(c.Dir, HeardName))
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "revocation list: %w", err)
	}
	t, err := identity.NewTrust(anchors, append(ofAuthorities(anchors, append(heard, unsaved...)), crls...)...)
	if err != nil {
		return nil, exit.Fail(exit.Usage, "", "trust of %s: %w", c.Dir, err)
	}
	return t, nil
}

func payTerms(key string, pay []Pay) ([]protocol.Terms, error) {
	var list []protocol.Terms
	for i, p := range pay {
		id := protocol.AgentID(p.Bank)
		if err := id.Validate(); err != nil {
			return nil, exit.Fail(exit.Usage, "'ramp ca show' prints the agent of a certificate", "configuration: %s[%d].bank: %w", key, i, err)
		}
		if !regexp.MustCompile(CurrencyPattern).MatchString(p.Currency) {
			return nil, exit.Fail(exit.Usage, "", "configuration: %s[%d].currency %q: want the currency to pay in, 3..8 capital letters", key, i, p.Currency)
		}
		list = append(list, protocol.Terms{Bank: id, Currency: p.Currency})
	}
	return list, nil
}

// AgentDir is the directory of an agent of a kind: --dir, else RAMP_DIR, else one below the
// user's data directory.
func AgentDir(flag, kind string) (string, error) {
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
		return "", exit.Fail(exit.Usage, "give --dir DIR", "no home directory: %w", err)
	}
	return filepath.Join(home, ".local", "share", "ramp", kind), nil
}

// EscapeGlob quotes a path for use in a glob pattern.
func EscapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// DataFile is the path of an agent's journal or ledger on this machine.
func (c *Config) DataFile() string {
	if c.Bank != nil {
		return c.bankFile()
	}
	return filepath.Join(c.Dir, JournalName)
}

// bankFile is the path of a bank's ledger on this machine: the mirror if the ledger is in a
// cluster.
func (c *Config) bankFile() string {
	if file, err := c.LedgerFile(); err == nil {
		return file
	}
	return filepath.Join(c.Dir, MirrorName)
}

// CertificateFault explains a fault of an agent's own certificate.
func CertificateFault(path string, err error) error {
	hint := "the agent needs a certificate that the market's trust anchors vouch for"
	switch {
	case errors.Is(err, identity.ErrExpired):
		hint = "have it renewed over the same key: 'ramp ca request' and 'ramp ca sign'; or is the clock wrong? ('ramp doctor')"
	case errors.Is(err, identity.ErrNotYetValid):
		hint = "is this machine's clock wrong? It says " + words.At(time.Now())
	case errors.Is(err, identity.ErrRevoked):
		hint = "ask the authority why, and for a certificate over a new key: 'ramp ca request' in another directory"
	}
	return exit.Fail(exit.Usage, hint, "certificate %s: %w", path, err)
}

// Kinds lists the kinds of agent that a person may have, each in its own directory.
var Kinds = []string{"user", "resource", "bank"}

// Kind is the kind of agent that a configuration is for.
func (c *Config) Kind() string {
	switch {
	case c.Bank != nil:
		return "bank"
	case c.Resource != nil:
		return "resource"
	}
	return "user"
}

// Pays lists the banks and currencies that an agent deals in.
func (c *Config) Pays() []Pay {
	switch {
	case c.User != nil:
		return c.User.Pay
	case c.Resource != nil:
		return c.Resource.Pay
	}
	return nil
}

// Vouched returns an error unless the agent's certificate is valid in its market now.
func (c *Config) Vouched(cred *identity.Credential) error {
	trust, err := c.TrustAnchors()
	if err != nil {
		return err
	}
	if _, err := trust.Verify(cred.ChainDER(), time.Now()); err != nil {
		return CertificateFault(c.Path(c.Certificate), err)
	}
	return nil
}
