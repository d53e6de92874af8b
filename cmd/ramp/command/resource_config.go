package command

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

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

// resourceConfig is what a site says about a resource.
type resourceConfig struct {
	Driver        string           `yaml:"driver"` // swf, local, slurm, pbs or command
	SWF           swfConfig        `yaml:"swf,omitempty"`
	Local         localConfig      `yaml:"local,omitempty"`
	Slurm         slurmConfig      `yaml:"slurm,omitempty"`
	PBS           pbsConfig        `yaml:"pbs,omitempty"`
	Command       commandConfig    `yaml:"command,omitempty"`
	StartPrice    string           `yaml:"start_price"` // credits per core-hour
	MinPrice      string           `yaml:"minimum_price"`
	Rounds        int              `yaml:"rounds,omitempty"` // anticipated rounds of bidding, n
	Pay           []payConfig      `yaml:"pay"`              // banks and currencies it deals in
	Modes         []string         `yaml:"modes,omitempty"`  // when it is paid; none: on-reservation
	Properties    propertiesConfig `yaml:"properties,omitempty"`
	Horizon       span             `yaml:"horizon,omitempty"`
	Hold          span             `yaml:"hold,omitempty"`
	Lead          span             `yaml:"lead,omitempty"` // from an offer to a slot that may move
	Jobs          *jobsConfig      `yaml:"jobs,omitempty"` // what may run in what is sold
	Cancel        cancelConfig     `yaml:"cancellation,omitempty"`
	Forecast      forecastConfig   `yaml:"forecast,omitempty"`
	BuyerHolds    int              `yaml:"buyer_holds,omitempty"`    // unsold units that one buyer may hold
	BuyerReserves int              `yaml:"buyer_reserves,omitempty"` // of them, those that the batch system has not granted yet
}

// swfConfig is a workload log as a live machine.
type swfConfig struct {
	Log   string    `yaml:"log"`
	Base  int64     `yaml:"base"` // second of the log at which the market starts
	Start instant   `yaml:"start,omitempty"`
	Jobs  jobsModel `yaml:"jobs,omitempty"`
}

// jobsModel is what jobs in sold slots of a replayed machine would use.
type jobsModel struct {
	Fail int `yaml:"fail_per_mille,omitempty"` // of the jobs, lost half way
	Idle int `yaml:"idle_per_mille,omitempty"` // of a job's core time, at most
	Busy int `yaml:"busy_per_mille,omitempty"` // of the cores that others take, at most
}

func (j jobsModel) model() (queue.Model, error) {
	for _, f := range []struct {
		key string
		n   int
	}{{"fail", j.Fail}, {"idle", j.Idle}, {"busy", j.Busy}} {
		if f.n < 0 || f.n > 1000 {
			return queue.Model{}, fail(exitUsage, "", "configuration: resource.swf.jobs.%s_per_mille %d: want 0..1000", f.key, f.n)
		}
	}
	return queue.Model{FailPerMille: j.Fail, IdlePerMille: j.Idle, BusyPerMille: j.Busy}, nil
}

// modes are the settlement modes of a list in the configuration.
func modes(key string, words []string) ([]protocol.Mode, error) {
	var list []protocol.Mode
	for i, w := range words {
		m, err := parseMode(w)
		if err != nil {
			return nil, fail(exitUsage, "", "configuration: %s[%d]: %w", key, i, err)
		}
		list = append(list, m)
	}
	return list, nil
}

// parseMode reads a settlement mode.
func parseMode(s string) (protocol.Mode, error) {
	if m := protocol.Mode(s); m.Known() {
		return m, nil
	}
	return "", fmt.Errorf("settlement mode %.32q: want %s, %s or %s", s, protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered)
}

// localConfig is a part of this machine.
type localConfig struct {
	Cores  int    `yaml:"cores,omitempty"`  // 0: all
	Claims string `yaml:"claims,omitempty"` // directory shared by all agents of this machine
}

// slurmConfig is a partition of a Slurm cluster.
type slurmConfig struct {
	Partition string   `yaml:"partition"`
	Users     []string `yaml:"users,omitempty"`      // who may run in what is sold
	HoldBy    string   `yaml:"hold_by,omitempty"`    // reservation or job
	Cores     int      `yaml:"cores,omitempty"`      // 0: asked at the start
	Conf      string   `yaml:"conf,omitempty"`       // of Slurm
	Prefix    []string `yaml:"prefix,omitempty"`     // before each command
	TimeLimit span     `yaml:"time_limit,omitempty"` // of one command
	Poll      span     `yaml:"poll,omitempty"`
}

// pbsConfig is an OpenPBS server.
type pbsConfig struct {
	Users     []string `yaml:"users,omitempty"`
	Cores     int      `yaml:"cores,omitempty"`
	Conf      string   `yaml:"conf,omitempty"`
	Prefix    []string `yaml:"prefix,omitempty"`
	TimeLimit span     `yaml:"time_limit,omitempty"`
	Poll      span     `yaml:"poll,omitempty"`
}

// commandConfig is a program of the site's own.
type commandConfig struct {
	Program   string   `yaml:"program"`
	Args      []string `yaml:"args,omitempty"`
	Cores     int      `yaml:"cores,omitempty"`
	TimeLimit span     `yaml:"time_limit,omitempty"`
	Poll      span     `yaml:"poll,omitempty"`
}

// propertiesConfig are the static properties of the nodes (002 §6.2.1).
type propertiesConfig struct {
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

// cancelConfig is until when, and at what fee, a settled unit is taken back.
type cancelConfig struct {
	Before      *span `yaml:"before,omitempty"` // the slot's start; absent: never
	FeePerMille int   `yaml:"fee_per_mille,omitempty"`
}

// driver is a batch system and what the configuration cannot know about it.
type driver struct {
	queue.Driver
	cores  int
	learnt *forecast.Forecast // of its past; nil: nothing is known
}

// drivers are the batch systems that there are.
var drivers = map[string]func(c *config, agent protocol.AgentID, log *slog.Logger) (driver, error){
	"swf":     openSWF,
	"local":   openLocal,
	"slurm":   openSlurm,
	"pbs":     openPBS,
	"command": openCommand,
}

// checkSWF reports what is wrong with a replayed machine, short of reading its log.
func (c *config) checkSWF() error {
	s := c.Resource.SWF
	if s.Log == "" {
		return fail(exitUsage, "", "configuration: resource.swf.log: want the path of a workload log")
	}
	if s.Base < 0 || s.Base > mostBase {
		return fail(exitUsage, "", "configuration: resource.swf.base %d: want a second of the log, 0..%d", s.Base, int64(mostBase))
	}
	if _, err := os.Stat(c.path(s.Log)); err != nil {
		return fail(exitUsage, logHint(err), "workload log: %w", err)
	}
	_, err := s.Jobs.model()
	return err
}

// mostBase bounds the second of a log at which a market starts: no log is a century long.
const mostBase = 100 * 366 * 24 * 3600

func openSWF(c *config, agent protocol.AgentID, log *slog.Logger) (driver, error) {
	if err := c.checkSWF(); err != nil {
		return driver{}, err
	}
	s := c.Resource.SWF
	l, notes, err := swf.Load(c.path(s.Log))
	if err != nil {
		return driver{}, fail(exitUsage, logHint(err), "%w", err)
	}
	// Where the log's seconds lie in time is told by the configuration, not by the log.
	notes = slices.DeleteFunc(notes, func(n workload.Note) bool { return n.Kind == workload.NoUnixStart })
	if len(notes) > 0 {
		log.Warn("odd workload log", "file", c.path(s.Log), "odd", swf.Told(notes))
	}
	jobs, err := s.Jobs.model()
	if err != nil {
		return driver{}, err
	}
	d, err := swf.Open(swf.Config{Agent: agent, Log: l, Jobs: jobs, Base: s.Base, Start: time.Time(s.Start), Dir: c.dir, Now: time.Now, Slog: log, Over: c.Resource.Forecast.Sharpen})
	if err != nil {
		return driver{}, fail(exitUsage, "", "%w", err)
	}
	return driver{d, l.Capacity(), forecast.Past(l, s.Base)}, nil
}

// checkLocal reports whether this machine has fewer cores than are for sale.
func (c *config) checkLocal() error {
	if err := local.CheckCores(c.Resource.Local.Cores); err != nil {
		return fail(exitUsage, "", "configuration: resource.local.cores: %w", err)
	}
	return nil
}

func openLocal(c *config, agent protocol.AgentID, log *slog.Logger) (driver, error) {
	if err := c.checkLocal(); err != nil {
		return driver{}, err
	}
	dir := c.Resource.Local.Claims
	if dir == "" {
		dir = claimsDir()
	} else {
		dir = c.path(dir)
	}
	d, err := local.Open(local.Config{Agent: agent, Dir: dir, Cores: c.Resource.Local.Cores, Keeper: keeper(), Now: time.Now, Slog: log})
	if err != nil {
		return driver{}, fail(exitUsage, "", "%w", err)
	}
	cores := c.Resource.Local.Cores
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	return driver{Driver: d, cores: cores}, nil
}

// claimsDir is where the agents of this machine keep their claims unless they are
// told: it must outlast a restart of the machine.
func claimsDir() string {
	if home, err := os.UserHomeDir(); err == nil && os.Getuid() != 0 {
		return filepath.Join(home, ".local", "state", "ramp", "claims")
	}
	return "/var/lib/ramp/claims"
}

// presenceTTL is how long a presence holds: three lost heartbeats and a little
// more, and never less than the default.
func presenceTTL(heartbeat span) time.Duration {
	return max(protocol.PresenceTTL, 7*time.Duration(heartbeat)/2)
}

// role is the configuration as the resource agent wants it.
func (r *resourceConfig) role(cred *identity.Credential, cores int, heartbeat span) (resource.Config, error) {
	start, err := protocol.ParseCredits(r.StartPrice)
	if err != nil {
		return resource.Config{}, fail(exitUsage, "", "configuration: resource.start_price: %w", err)
	}
	least, err := protocol.ParseCredits(r.MinPrice)
	if err != nil {
		return resource.Config{}, fail(exitUsage, "", "configuration: resource.minimum_price: %w", err)
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
		Price: pricing.Band{Start: start, Min: least, Rounds: r.Rounds},
		Properties: protocol.Properties{
			OS: p.OS, OSVersion: p.OSVersion, Arch: p.Arch, CPUSpeed: p.CPUSpeed, Bandwidth: p.Bandwidth,
			RAMPerCore: p.RAMPerCore, TotalDisk: p.TotalDisk, NodeDisk: p.NodeDisk, NodeCores: p.NodeCores, Cores: cores,
		},
		Horizon: time.Duration(r.Horizon), Lead: time.Duration(r.Lead), Hold: time.Duration(r.Hold), BuyerHolds: r.BuyerHolds, BuyerReserves: r.BuyerReserves, Heartbeat: time.Duration(heartbeat),
	}
	cfg.TTL = presenceTTL(heartbeat)
	cfg.Sharpen, cfg.BrokenPerMille = r.Forecast.Sharpen, r.Forecast.Broken
	if r.Cancel.Before != nil {
		cfg.Cancellation = reserve.CancelPolicy{Allowed: true, Before: time.Duration(*r.Cancel.Before), FeePerMille: r.Cancel.FeePerMille}
	}
	if err := cfg.Validate(); err != nil {
		return cfg, fail(exitUsage, "", "configuration: %w", err)
	}
	return cfg, nil
}
