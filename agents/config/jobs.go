package config

import (
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"time"

	"ramp/agents/exit"
	"ramp/agents/queue/slurm"
	"ramp/agents/resource/launch"
	"ramp/agents/stage"
	"ramp/protocol"
)

// Jobs says which programs may run in sold slots, and under which accounts.
type Jobs struct {
	Dir           string              `yaml:"dir,omitempty"`     // of the jobs' files; nodes must see it
	Address       string              `yaml:"address,omitempty"` // where programs run, as others reach them
	Keep          Span                `yaml:"keep,omitempty"`    // how long outputs are kept
	MaxInputMB    int64               `yaml:"max_input_mb,omitempty"`
	MaxOutputMB   int64               `yaml:"max_output_mb,omitempty"`
	MemoryPerCore int64               `yaml:"memory_per_core_mb,omitempty"`
	Network       bool                `yaml:"network,omitempty"` // jobs share the machine's
	Read          []string            `yaml:"read,omitempty"`    // directories that jobs see, besides the system's
	Image         string              `yaml:"image,omitempty"`   // directory with the system that jobs see, instead of the machine's
	UIDs          string              `yaml:"uids,omitempty"`    // range of uids that jobs run under
	Accept        []string            `yaml:"accept,omitempty"`  // protections that this machine may lack
	Accounts      []Account           `yaml:"accounts"`
	Pools         map[string][]string `yaml:"pools,omitempty"` // local accounts, each for one buyer at a time
	Applications  []App               `yaml:"applications,omitempty"`
}

// Account maps a buyer to a local account.
type Account struct {
	Agent    string `yaml:"agent"`              // an agent's ID, or "*"
	User     string `yaml:"user,omitempty"`     // local account, or pool
	Commands bool   `yaml:"commands,omitempty"` // it may run any command
}

// App is an application that the site has installed.
type App struct {
	Name       string      `yaml:"name"`
	Command    []string    `yaml:"command"`
	Parameters []Parameter `yaml:"parameters,omitempty"`
}

// Parameter bounds the values of an application's parameter.
type Parameter struct {
	Name    string  `yaml:"name"`
	Match   string  `yaml:"match"` // regular expression of the whole value
	Default *string `yaml:"default,omitempty"`
}

// jobsDir is the default directory of jobs' files, below the agent's directory.
const jobsDir = "jobs"

const megabyte = 1 << 20

// Launches converts the section for the role.
func (c *Config) Launches(self protocol.AgentID, log *slog.Logger) (launch.Config, error) {
	j := c.Resource.Jobs
	root, err := c.jobsRoot()
	if err != nil || j == nil {
		return launch.Config{Self: self, Root: root}, err
	}
	l := launch.Config{
		Self: self, Root: root, Address: j.Address, Keep: time.Duration(j.Keep),
		Policy: launch.Policy{MaxInput: j.MaxInputMB * megabyte, MaxOutput: j.MaxOutputMB * megabyte, MemoryPerCore: j.MemoryPerCore * megabyte},
	}
	if l.Address == "" {
		if l.Address, err = os.Hostname(); err != nil {
			return l, exit.Fail(exit.Usage, "set resource.jobs.address", "the name of this machine: %w", err)
		}
	}
	if err := c.checkPlaceholders(); err != nil {
		return l, err
	}
	if l.Policy.Accounts, err = j.accounts(root, c.ownUIDs()); err != nil {
		return l, err
	}
	if l.Policy.Apps, err = j.apps(); err != nil {
		return l, err
	}
	if err := l.Validate(); err != nil {
		return l, exit.Fail(exit.Usage, "", "configuration: resource.jobs: %w", err)
	}
	closed, lacks, err := c.runsNothing()
	if l.Policy.Closed = closed; closed != "" { // launches are refused at once
		log.Warn("no programs are run here: resource.jobs is not used", "why", closed)
		return l, err
	}
	for _, lack := range lacks {
		log.Warn("programs of buyers run without a protection, which resource.jobs.accept allows", "lacks", lack.Protection, "why", lack.Why)
	}
	return l, err
}

// jobsRoot is the absolute path of the directory of all jobs.
func (c *Config) jobsRoot() (string, error) {
	if j := c.Resource.Jobs; j != nil && j.Dir != "" {
		return c.absolute(j.Dir), nil
	}
	return filepath.Abs(c.Path(jobsDir))
}

// checkPlaceholders refuses other accounts if placeholder jobs hold the slots: programs run in
// them under the account that submitted them, the agent's own unless a prefix changes it.
func (c *Config) checkPlaceholders() error {
	r := c.Resource
	if r.Driver != "slurm" || r.Slurm.HoldBy != string(slurm.HoldJob) || len(r.Slurm.Prefix) > 0 {
		return nil
	}
	self, err := user.Current()
	if err != nil {
		return exit.Fail(exit.Usage, "", "configuration: resource.jobs.accounts: the agent's own account has no name: %w", err)
	}
	for i, a := range r.Jobs.Accounts {
		if a.User != "" && a.User != self.Username {
			return exit.Fail(exit.Usage, "name no other account, or submit as that one by resource.slurm.prefix",
				"configuration: resource.jobs.accounts[%d].user: %q: with resource.slurm.hold_by: job, programs run as the account that holds the slots, %q", i, a.User, self.Username)
		}
	}
	return nil
}

// accounts lists the buyers that may run programs. An agent of root runs nothing as root
// unless the configuration names that account.
func (j *Jobs) accounts(root string, ownUIDs bool) (map[protocol.AgentID]launch.Account, error) {
	all := map[protocol.AgentID]launch.Account{}
	for i, a := range j.Accounts {
		id := protocol.AgentID(a.Agent)
		if id != launch.Everybody {
			if err := id.Validate(); err != nil {
				return nil, exit.Fail(exit.Usage, "'ramp ca show' prints the agent of a certificate; \"*\" is everybody", "configuration: resource.jobs.accounts[%d].agent: %w", i, err)
			}
		}
		if a.User == "" && os.Geteuid() == 0 && !ownUIDs {
			return nil, exit.Fail(exit.Usage, "set resource.jobs.uids (driver local), or name a local account that owns nothing else", "configuration: resource.jobs.accounts[%d].user: the agent is root, and runs programs as root only if this names root", i)
		}
		if os.Geteuid() == 0 && (a.User != "root" || ownUIDs) {
			if err := stage.RootError(root); err != nil {
				return nil, exit.Fail(exit.Usage, "set resource.jobs.dir to a directory that other accounts can pass through", "configuration: resource.jobs: %w", err)
			}
		}
		all[id] = launch.Account{User: a.User, Pool: j.Pools[a.User], Commands: a.Commands}
	}
	return all, nil
}

func (j *Jobs) apps() (map[string]launch.App, error) {
	all := map[string]launch.App{}
	for i, a := range j.Applications {
		if a.Name == "" || all[a.Name].Command != nil {
			return nil, exit.Fail(exit.Usage, "", "configuration: resource.jobs.applications[%d].name %q: want a different name for each application", i, a.Name)
		}
		app := launch.App{Command: a.Command, Params: map[string]*regexp.Regexp{}, Default: map[string]string{}}
		for k, p := range a.Parameters {
			re, err := regexp.Compile("^(?:" + p.Match + ")$")
			if err != nil || p.Match == "" {
				return nil, exit.Fail(exit.Usage, "", "configuration: resource.jobs.applications[%d].parameters[%d].match %q: want a regular expression", i, k, p.Match)
			}
			app.Params[p.Name] = re
			if p.Default != nil {
				app.Default[p.Name] = *p.Default
			}
		}
		all[a.Name] = app
	}
	return all, nil
}

// KeepJob is the hidden command that runs one job of the local driver.
const KeepJob = "keep-job"

// keeper is the command that runs this program as the keeper of a job.
func keeper() []string {
	path := os.Args[0]
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil // without a working directory there are no jobs
	}
	return []string{abs, KeepJob}
}
