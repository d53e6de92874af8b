package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"ramp/agents/exit"
	"ramp/agents/queue"
	"ramp/agents/queue/local"
	"ramp/agents/queue/swf"
	"ramp/agents/resource"
	"ramp/agents/resource/forecast"
	"ramp/agents/resource/pricing"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// JournalName is a node's journal in its directory.
const JournalName = "journal.db"

// Resource is the section of a site.
type Resource struct {
	Driver        string     `yaml:"driver"` // swf, local, slurm, pbs or command
	SWF           SWF        `yaml:"swf,omitempty"`
	Local         Local      `yaml:"local,omitempty"`
	Slurm         Slurm      `yaml:"slurm,omitempty"`
	PBS           PBS        `yaml:"pbs,omitempty"`
	Command       Command    `yaml:"command,omitempty"`
	StartPrice    string     `yaml:"start_price" live:""` // list price in credits per core-hour, at which bids open
	MinPrice      string     `yaml:"minimum_price" live:""`
	Pricing       string     `yaml:"pricing,omitempty" live:""` // list (default) or ramp, the rule of 002
	Rounds        int        `yaml:"rounds,omitempty" live:""`  // anticipated rounds of bidding, n
	Idle          int        `yaml:"idle_percent,omitempty"`    // of a metered ceiling, due at least
	Pay           []Pay      `yaml:"pay"`                       // banks and currencies that it deals in
	Modes         []string   `yaml:"modes,omitempty"`           // when it is paid; empty: on-reservation
	Properties    Properties `yaml:"properties,omitempty"`
	Horizon       Span       `yaml:"horizon,omitempty" live:""`
	Hold          Span       `yaml:"hold,omitempty" live:""`
	Lead          Span       `yaml:"lead,omitempty" live:""` // least time from an offer to a slot
	Jobs          *Jobs      `yaml:"jobs,omitempty"`         // which programs may run in sold slots
	Cancel        Cancel     `yaml:"cancellation,omitempty"`
	Federation    Federation `yaml:"federation,omitempty"` // of sites that share cores by priority
	Forecast      Forecast   `yaml:"forecast,omitempty"`
	BuyerHolds    int        `yaml:"buyer_holds,omitempty" live:""` // unsold units that one buyer may hold
	BuyerReserves int        `yaml:"buyer_reserves,omitempty"`      // of them, those that the batch system has not granted yet
}

// SWF replays a workload log as a live machine.
type SWF struct {
	Log   string    `yaml:"log"`
	Base  int64     `yaml:"base"` // second of the log at which the market starts
	Start Instant   `yaml:"start,omitempty"`
	Jobs  JobsModel `yaml:"jobs,omitempty"`
}

// JobsModel is the usage of jobs in sold slots of a replayed machine.
type JobsModel struct {
	Fail int `yaml:"fail_per_mille,omitempty"` // of the jobs, lost half way
	Idle int `yaml:"idle_per_mille,omitempty"` // of a job's core time, at most
	Busy int `yaml:"busy_per_mille,omitempty"` // of the cores that others take, at most
}

func (j JobsModel) model() (queue.Model, error) {
	for _, f := range []struct {
		key string
		n   int
	}{{"fail", j.Fail}, {"idle", j.Idle}, {"busy", j.Busy}} {
		if f.n < 0 || f.n > 1000 {
			return queue.Model{}, exit.Fail(exit.Usage, "", "configuration: resource.swf.jobs.%s_per_mille %d: want 0..1000", f.key, f.n)
		}
	}
	return queue.Model{FailPerMille: j.Fail, IdlePerMille: j.Idle, BusyPerMille: j.Busy}, nil
}

func modes(key string, words []string) ([]protocol.Mode, error) {
	var list []protocol.Mode
	for i, w := range words {
		m, err := ParseMode(w)
		if err != nil {
			return nil, exit.Fail(exit.Usage, "", "configuration: %s[%d]: %w", key, i, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// ParseMode reads a payment mode.
func ParseMode(s string) (protocol.Mode, error) {
	if m := protocol.Mode(s); m.Known() {
		return m, nil
	}
	return "", fmt.Errorf("payment mode %.32q: want %s, %s or %s", s, protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered)
}

// Local is a part of this machine.
type Local struct {
	Cores  int    `yaml:"cores,omitempty"`  // 0: all
	Claims string `yaml:"claims,omitempty"` // directory shared by all agents of this machine
}

// Slurm is a partition of a Slurm cluster.
type Slurm struct {
	Partition string   `yaml:"partition"`
	Users     []string `yaml:"users,omitempty"`      // who may run jobs in sold slots
	HoldBy    string   `yaml:"hold_by,omitempty"`    // reservation or job
	Cores     int      `yaml:"cores,omitempty"`      // 0: asked at the start
	Conf      string   `yaml:"conf,omitempty"`       // of Slurm
	Prefix    []string `yaml:"prefix,omitempty"`     // before each command
	TimeLimit Span     `yaml:"time_limit,omitempty"` // of one command
	Poll      Span     `yaml:"poll,omitempty"`
}

// PBS is an OpenPBS server.
type PBS struct {
	Users     []string `yaml:"users,omitempty"`
	Cores     int      `yaml:"cores,omitempty"`
	Conf      string   `yaml:"conf,omitempty"`
	Prefix    []string `yaml:"prefix,omitempty"`
	TimeLimit Span     `yaml:"time_limit,omitempty"`
	Poll      Span     `yaml:"poll,omitempty"`
}

// Command is the site's own program as a batch system.
type Command struct {
	Program   string   `yaml:"program"`
	Args      []string `yaml:"args,omitempty"`
	Cores     int      `yaml:"cores,omitempty"`
	TimeLimit Span     `yaml:"time_limit,omitempty"`
	Poll      Span     `yaml:"poll,omitempty"`
}

// Properties are the static properties of the nodes (002 §6.2.1).
type Properties struct {
	OS         string `yaml:"os,omitempty"`
	OSVersion  string `yaml:"os_version,omitempty"`
	Arch       string `yaml:"architecture,omitempty"`
	CPUSpeed   int    `yaml:"cpu_speed_mhz,omitempty"`
	Bandwidth  int    `yaml:"bandwidth_mbits,omitempty"`
	RAMPerCore int    `yaml:"ram_per_core_mb,omitempty"`
	TotalDisk  int    `yaml:"total_disk_gb,omitempty"`
	NodeDisk   int    `yaml:"node_disk_gb,omitempty"`
	NodeCores  int    `yaml:"node_cores,omitempty"`
}

// Cancel says until when, and at what fee, buyers may cancel a settled unit.
type Cancel struct {
	Before      *Span `yaml:"before,omitempty"` // the slot's start; absent: never
	FeePerMille int   `yaml:"fee_per_mille,omitempty"`
}

// Driver is an opened batch system.
type Driver struct {
	queue.Driver
	Cores  int
	Learnt *forecast.Forecast // from its past; nil if it is unknown
}

// Drivers has all drivers by name.
var Drivers = map[string]func(c *Config, agent protocol.AgentID, log *slog.Logger) (Driver, error){
	"swf":     openSWF,
	"local":   openLocal,
	"slurm":   openSlurm,
	"pbs":     openPBS,
	"command": openCommand,
}

// checkSWF checks a replayed machine, short of reading its log.
func (c *Config) checkSWF() error {
	s := c.Resource.SWF
	if s.Log == "" {
		return exit.Fail(exit.Usage, "", "configuration: resource.swf.log: want the path of a workload log")
	}
	if s.Base < 0 || s.Base > mostBase {
		return exit.Fail(exit.Usage, "", "configuration: resource.swf.base %d: want a second of the log, 0..%d", s.Base, int64(mostBase))
	}
	if _, err := os.Stat(c.Path(s.Log)); err != nil {
		return exit.Fail(exit.Usage, LogHint(err), "workload log: %w", err)
	}
	_, err := s.Jobs.model()
	return err
}

// stateHint helps with a damaged file of a driver; journals have the slots that were sold.
func stateHint(err error) string {
	if errors.Is(err, queue.ErrDamaged) {
		return "restore it from a copy, or move it away: each site that kept slots there then makes its sold ones again where cores are free, and the bank refunds the others"
	}
	return ""
}

// mostBase bounds the second of a log at which a market starts: no log is a century long.
const mostBase = 100 * 366 * 24 * 3600

func openSWF(c *Config, agent protocol.AgentID, log *slog.Logger) (Driver, error) {
	if err := c.checkSWF(); err != nil {
		return Driver{}, err
	}
	s := c.Resource.SWF
	l, notes, err := swf.Load(c.Path(s.Log))
	if err != nil {
		return Driver{}, exit.Fail(exit.Usage, LogHint(err), "%w", err)
	}
	// The configuration, not the log, places the log's seconds in time.
	notes = slices.DeleteFunc(notes, func(n workload.Note) bool { return n.Kind == workload.NoUnixStart })
	if len(notes) > 0 {
		log.Warn("odd workload log", "file", c.Path(s.Log), "odd", swf.Told(notes))
	}
	jobs, err := s.Jobs.model()
	if err != nil {
		return Driver{}, err
	}
	d, err := swf.Open(swf.Config{Agent: agent, Log: l, Jobs: jobs, Base: s.Base, Start: time.Time(s.Start), Dir: c.Dir, Now: time.Now, Slog: log, Over: c.Resource.Forecast.Overbook})
	if err != nil {
		return Driver{}, exit.Fail(exit.Usage, stateHint(err), "%w", err)
	}
	return Driver{d, l.Capacity(), forecast.Past(l, s.Base)}, nil
}

// checkLocal returns an error if this machine has fewer cores than are for sale.
func (c *Config) checkLocal() error {
	if err := local.CheckCores(c.Resource.Local.Cores); err != nil {
		return exit.Fail(exit.Usage, "", "configuration: resource.local.cores: %w", err)
	}
	return nil
}

func openLocal(c *Config, agent protocol.AgentID, log *slog.Logger) (Driver, error) {
	if err := c.checkLocal(); err != nil {
		return Driver{}, err
	}
	dir := c.Resource.Local.Claims
	if dir == "" {
		dir = claimsDir()
	} else {
		dir = c.Path(dir)
	}
	cfg := local.Config{Agent: agent, Dir: dir, Cores: c.Resource.Local.Cores, Now: time.Now, Slog: log}
	if c.Resource.Jobs != nil {
		var err error
		if cfg.Contain, err = c.containment(); err != nil {
			return Driver{}, err
		}
		cfg.Keeper = keeper()
	}
	d, err := local.Open(cfg)
	if err != nil {
		return Driver{}, exit.Fail(exit.Usage, stateHint(err), "%w", err)
	}
	cores := cmp.Or(c.Resource.Local.Cores, runtime.NumCPU())
	return Driver{Driver: d, Cores: cores}, nil
}

// claimsDir is the default directory of claims of the agents of this machine. It must
// outlast a restart of the machine.
func claimsDir() string {
	if home, err := os.UserHomeDir(); err == nil && os.Getuid() != 0 {
		return filepath.Join(home, ".local", "state", "ramp", "claims")
	}
	return "/var/lib/ramp/claims"
}

// Role converts the section for the role.
func (r *Resource) Role(cred *identity.Credential, cores int, heartbeat Span) (resource.Config, error) {
	start, err := protocol.ParseCredits(r.StartPrice)
	if err != nil {
		return resource.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.start_price: %w", err)
	}
	least, err := protocol.ParseCredits(r.MinPrice)
	if err != nil {
		return resource.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.minimum_price: %w", err)
	}
	terms, err := payTerms("resource.pay", r.Pay)
	if err != nil {
		return resource.Config{}, err
	}
	paid, err := modes("resource.modes", r.Modes)
	if err != nil {
		return resource.Config{}, err
	}
	if err := r.Forecast.check(r.Driver); err != nil {
		return resource.Config{}, err
	}
	p := r.Properties
	cfg := resource.Config{
		Credential: cred, Terms: terms, Modes: paid,
		Price: pricing.Band{Start: start, Min: least, Rounds: r.Rounds, Rule: pricing.Rule(r.Pricing)}, Idle: r.Idle,
		Properties: protocol.Properties{
			OS: p.OS, OSVersion: p.OSVersion, Arch: p.Arch, CPUSpeed: p.CPUSpeed, Bandwidth: p.Bandwidth,
			RAMPerCore: p.RAMPerCore, TotalDisk: p.TotalDisk, NodeDisk: p.NodeDisk, NodeCores: p.NodeCores, Cores: cores,
		},
		Horizon: time.Duration(r.Horizon), Lead: time.Duration(r.Lead), Hold: time.Duration(r.Hold), BuyerHolds: r.BuyerHolds, BuyerReserves: r.BuyerReserves, Heartbeat: time.Duration(heartbeat),
	}
	cfg.TTL = max(protocol.PresenceTTL, 7*time.Duration(heartbeat)/2)
	cfg.Overbook, cfg.BrokenPerMille = r.Forecast.Overbook, r.Forecast.Broken
	if r.Cancel.Before != nil {
		cfg.Cancellation = reserve.CancelPolicy{Allowed: true, Before: time.Duration(*r.Cancel.Before), FeePerMille: r.Cancel.FeePerMille}
	}
	if err := cfg.Validate(); err != nil {
		return cfg, exit.Fail(exit.Usage, "", "configuration: %w", err)
	}
	return cfg, nil
}

// MaxFleet bounds the agents of one daemon.
const MaxFleet = 64

// Below lists the configurations in the subdirectories of a directory, in order.
func Below(dir string) []string {
	list, err := filepath.Glob(filepath.Join(EscapeGlob(dir), "*", Name))
	if err != nil {
		return nil // only a bad pattern is an error
	}
	slices.Sort(list)
	return list
}

// Distinct refuses two agents with one credential, as after copying a directory: each would
// take the other's sales for a stranger's.
func Distinct(paths []string) error {
	of := map[protocol.AgentID]string{}
	for _, path := range paths {
		cfg, err := Read(path)
		if err != nil {
			continue // serving it reports the error
		}
		cred, err := cfg.Credential()
		if err != nil {
			continue
		}
		if other := of[cred.ID]; other != "" {
			return exit.Fail(exit.Usage, "each agent needs its own credential: use 'ramp ca issue', or 'ramp resource init' in another directory",
				"%s and %s are both of %s", filepath.Dir(other), filepath.Dir(path), cred.ID)
		}
		of[cred.ID] = path
	}
	return nil
}

func DriverNames() string { return strings.Join(slices.Sorted(maps.Keys(Drivers)), " or ") }

// LogHint helps with a workload log that cannot be read.
func LogHint(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "'ramp swf synth' makes a synthetic log"
	}
	return "'ramp swf validate FILE' lists every fault of a log"
}

// Forecast says how a site uses its forecast of running jobs.
type Forecast struct {
	Overbook bool `yaml:"sharpen,omitempty"`          // sell cores of jobs that are expected to end early
	Broken   int  `yaml:"broken_per_mille,omitempty"` // broken promises at which the site stops that
}

// cannotOverbook says why a driver cannot sell cores of running jobs; "" if it can.
func cannotOverbook(driver string) string {
	return map[string]string{
		"slurm":   "a reservation of Slurm 22.05 over running jobs (IGNORE_JOBS) takes the first cores by number, also those of a job that runs on while others are free",
		"pbs":     "PBS confirms no reservation over the requested time of a running job",
		"local":   "it knows of no jobs but those in sold slots",
		"command": "its program does not identify jobs, so their waits cannot be learnt",
	}[driver]
}

func (f Forecast) check(driver string) error {
	why := cannotOverbook(driver)
	switch {
	case f.Overbook && why != "":
		return exit.Fail(exit.Usage, "leave it out: it sells by the requested times then; docs/FORECAST.md says more",
			"configuration: resource.forecast.sharpen: not with the driver %s: %s", driver, why)
	case f.Broken != 0 && !f.Overbook:
		return exit.Fail(exit.Usage, "", "configuration: resource.forecast.broken_per_mille: needs resource.forecast.sharpen: true")
	case f.Broken < 0 || f.Broken > resource.MaxBroken:
		return exit.Fail(exit.Usage, "", "configuration: resource.forecast.broken_per_mille %d: want 1..%d", f.Broken, resource.MaxBroken)
	}
	return nil
}
