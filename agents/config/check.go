package config

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"time"

	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/protocol/identity"
)

// Check checks the keys that every kind of agent has.
func (c *Config) Check() error {
	if err := checkMonitor(c.Monitor); err != nil {
		return err
	}
	if err := c.Web.Check(); err != nil {
		return err
	}
	if err := cmp.Or(mesh.CheckAddresses(c.Listen, c.Bootstrap), mesh.CheckAnnounce(c.Announce)); err != nil {
		return exit.Fail(exit.Usage, "", "configuration: %w", err)
	}
	if h := time.Duration(c.Heartbeat); h != 0 && (h < leastHeartbeat || h > mostHeartbeat) {
		return exit.Fail(exit.Usage, "", "configuration: heartbeat %s: want %s..%s", h, leastHeartbeat, mostHeartbeat)
	}
	if c.Index && c.User != nil {
		return exit.Fail(exit.Usage, "leave it out: users only ask indexes", "configuration: index: only a bank or a site can be an index")
	}
	return c.Log.Check()
}

// Bounds of a heartbeat. A presence is valid for three and a half of them, and agents ignore
// one that is valid for longer than protocol.MaxTTL.
const (
	leastHeartbeat = 100 * time.Millisecond
	mostHeartbeat  = 15 * time.Minute
)

// Checked is what `config check` prints.
type Checked struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Kind     string    `json:"kind"`
	Agent    string    `json:"agent"`
	NotAfter time.Time `json:"certificate_not_after"`
}

func CheckConfig(kind, file string) (Checked, error) {
	cfg, err := Read(file)
	if err != nil {
		return Checked{}, err
	}
	if err := cfg.Check(); err != nil {
		return Checked{}, err
	}
	cred, err := cfg.Credential()
	if err != nil {
		return Checked{}, err
	}
	trust, err := cfg.TrustAnchors()
	if err != nil {
		return Checked{}, err
	}
	if _, err := trust.Verify(cred.ChainDER(), time.Now()); err != nil {
		return Checked{}, exit.Fail(exit.Usage, "", "own certificate %s: %w", cfg.Path(cfg.Certificate), err)
	}
	if err := CheckKind(kind, file, cfg, cred, trust); err != nil {
		return Checked{}, err
	}
	return Checked{File: file, Valid: true, Kind: kind, Agent: string(cred.ID), NotAfter: cred.Chain[0].NotAfter.UTC()}, nil
}

// CheckKind checks the section of the kind.
func CheckKind(kind, file string, cfg *Config, cred *identity.Credential, trust *identity.Trust) error {
	switch kind {
	case "user":
		_, err := cfg.UserRole(cred, trust)
		return err
	case "bank":
		return cfg.checkBank(file)
	}
	if cfg.Resource == nil {
		return exit.Fail(exit.Usage, cfg.KindHint("resource", "write a section 'resource:'"), "configuration %s is not a resource's", file)
	}
	if Drivers[cfg.Resource.Driver] == nil {
		return exit.Fail(exit.Usage, "", "configuration %s: resource.driver %q: want %s", file, cfg.Resource.Driver, DriverNames())
	}
	l, err := cfg.Launches(cred.ID, Quiet())
	if err != nil {
		return err
	}
	if _, err := cfg.Federation(cred.ID, 0); err != nil {
		return err
	}
	if _, err := cfg.Resource.Role(cred, 1, cfg.Heartbeat); err != nil {
		return err
	}
	switch cfg.Resource.Driver {
	case "swf":
		return cfg.checkSWF()
	case "local":
		err = cfg.checkLocal()
	default:
		err = cfg.checkBatch(cred.ID)
	}
	if why := l.Policy.Closed; why != "" && err == nil {
		return exit.Fail(exit.Usage, uncontained, "configuration: resource.jobs: %w: %s", errClosed, why)
	}
	return err
}

// errClosed is a fault with which an agent starts nevertheless, and sells slots only.
var errClosed = errors.New("programs are refused")

// Reread reads a configuration of a kind of agent again. It refuses what a start would.
func Reread(kind, file string, trust *identity.Trust) (*Config, error) {
	cfg, err := Read(file)
	if err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cred, err := cfg.Credential()
	if err != nil {
		return nil, err
	}
	if err := CheckKind(kind, file, cfg, cred, trust); !errors.Is(err, errClosed) {
		return cfg, err
	}
	return cfg, nil
}

// NeedsRestart lists the keys in which next differs from c, except those that an agent
// adopts while it runs, which are tagged "live".
func (c *Config) NeedsRestart(next *Config) []string {
	return differing(reflect.ValueOf(*c), reflect.ValueOf(*next), "")
}

func differing(x, y reflect.Value, prefix string) (keys []string) {
	for i := range x.NumField() {
		f := x.Type().Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		a, b := x.Field(i), y.Field(i)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct && !a.IsNil() && !b.IsNil() {
			a, b = a.Elem(), b.Elem()
		}
		switch _, live := f.Tag.Lookup("live"); {
		case live || key == "-" || reflect.DeepEqual(a.Interface(), b.Interface()):
		case a.Kind() == reflect.Struct && a.Type() != reflect.TypeFor[Instant]():
			keys = append(keys, differing(a, b, prefix+key+".")...)
		default:
			keys = append(keys, prefix+key)
		}
	}
	return keys
}
