package command

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/mesh"
	"ramp/agents/queue/local"
	"ramp/agents/queue/slurm"
	"ramp/agents/resource"
	"ramp/agents/resource/launch"
	"ramp/agents/stage"
	"ramp/protocol"
)

// jobsConfig is what may run in what is sold, and as whom.
type jobsConfig struct {
	Dir           string          `yaml:"dir,omitempty"`     // of the jobs' files; nodes must see it
	Address       string          `yaml:"address,omitempty"` // where programs run, as others reach them
	Keep          span            `yaml:"keep,omitempty"`    // how long outputs are kept
	MaxInputMB    int64           `yaml:"max_input_mb,omitempty"`
	MaxOutputMB   int64           `yaml:"max_output_mb,omitempty"`
	MemoryPerCore int64           `yaml:"memory_per_core_mb,omitempty"`
	Accounts      []accountConfig `yaml:"accounts"`
	Applications  []appConfig     `yaml:"applications,omitempty"`
}

// accountConfig is what a buyer is on this site.
type accountConfig struct {
	Agent    string `yaml:"agent"`              // an agent's ID, or "*"
	User     string `yaml:"user,omitempty"`     // local account
	Commands bool   `yaml:"commands,omitempty"` // it may run any command
}

// appConfig is an application that the site has installed.
type appConfig struct {
	Name       string            `yaml:"name"`
	Command    []string          `yaml:"command"`
	Parameters []parameterConfig `yaml:"parameters,omitempty"`
}

// parameterConfig is what a parameter of an application may be.
type parameterConfig struct {
	Name    string  `yaml:"name"`
	Match   string  `yaml:"match"` // regular expression of the whole value
	Default *string `yaml:"default,omitempty"`
}

// jobsDir is where jobs have their files unless the configuration says so.
const jobsDir = "jobs"

const megabyte = 1 << 20

// launches is what the configuration lets run.
func (c *config) launches(self protocol.AgentID, log *slog.Logger) (launch.Config, error) {
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
			return l, fail(exitUsage, "set resource.jobs.address", "the name of this machine: %w", err)
		}
	}
	if err := c.holderRuns(); err != nil {
		return l, err
	}
	if l.Policy.Accounts, err = j.accounts(root); err != nil {
		return l, err
	}
	if l.Policy.Apps, err = j.apps(); err != nil {
		return l, err
	}
	if err := l.Validate(); err != nil {
		return l, fail(exitUsage, "", "configuration: resource.jobs: %w", err)
	}
	if why := c.runsNothing(); why != "" {
		log.Warn("no programs are run here: resource.jobs is not used", "why", why)
		l.Policy.Accounts = nil // so a launch is refused at once
	}
	return l, nil
}

// runsNothing says why no program can run in what is sold; empty: it can.
func (c *config) runsNothing() string {
	switch r := c.Resource; {
	case r.Driver == "swf":
		return "the driver swf is a model"
	}
	return ""
}

// jobsRoot is below which jobs have their directories, as an absolute path.
func (c *config) jobsRoot() (string, error) {
	if j := c.Resource.Jobs; j != nil && j.Dir != "" {
		return c.absolute(j.Dir), nil
	}
	return filepath.Abs(c.path(jobsDir))
}

// holderRuns refuses accounts that cannot run what is launched in placeholder jobs:
// it runs as the account that holds the slots, the agent's own unless a prefix
// makes it another.
func (c *config) holderRuns() error {
	r := c.Resource
	if r.Driver != "slurm" || r.Slurm.HoldBy != string(slurm.HoldJob) || len(r.Slurm.Prefix) > 0 {
		return nil
	}
	self, err := user.Current()
	if err != nil {
		return fail(exitUsage, "", "configuration: resource.jobs.accounts: the agent's own account has no name: %w", err)
	}
	for i, a := range r.Jobs.Accounts {
		if a.User != "" && a.User != self.Username {
			return fail(exitUsage, "name no other account, or hold slots as that one by resource.slurm.prefix",
				"configuration: resource.jobs.accounts[%d].user: %q: with resource.slurm.hold_by: job, programs run as the account that holds the slots, %q", i, a.User, self.Username)
		}
	}
	return nil
}

// accounts are the buyers that may run something. An agent that is root runs
// nothing as root unless it is told so.
func (j *jobsConfig) accounts(root string) (map[protocol.AgentID]launch.Account, error) {
	all := map[protocol.AgentID]launch.Account{}
	for i, a := range j.Accounts {
		id := protocol.AgentID(a.Agent)
		if id != launch.Everybody {
			if err := id.Validate(); err != nil {
				return nil, fail(exitUsage, "'ramp ca show' prints the agent of a certificate; \"*\" is everybody", "configuration: resource.jobs.accounts[%d].agent: %w", i, err)
			}
		}
		if a.User == "" && os.Geteuid() == 0 {
			return nil, fail(exitUsage, "name a local account that owns nothing else", "configuration: resource.jobs.accounts[%d].user: the agent is root, and runs nothing as root unless it is told so", i)
		}
		if os.Geteuid() == 0 && a.User != "root" {
			if err := stage.RootError(root); err != nil {
				return nil, fail(exitUsage, "set resource.jobs.dir to a directory that other accounts can pass through", "configuration: resource.jobs: %w", err)
			}
		}
		all[id] = launch.Account{User: a.User, Commands: a.Commands}
	}
	return all, nil
}

func (j *jobsConfig) apps() (map[string]launch.App, error) {
	all := map[string]launch.App{}
	for i, a := range j.Applications {
		if a.Name == "" || all[a.Name].Command != nil {
			return nil, fail(exitUsage, "", "configuration: resource.jobs.applications[%d].name %q: want a name of its own", i, a.Name)
		}
		app := launch.App{Command: a.Command, Params: map[string]*regexp.Regexp{}, Default: map[string]string{}}
		for k, p := range a.Parameters {
			re, err := regexp.Compile("^(?:" + p.Match + ")$")
			if err != nil || p.Match == "" {
				return nil, fail(exitUsage, "", "configuration: resource.jobs.applications[%d].parameters[%d].match %q: want a regular expression", i, k, p.Match)
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

// keepFiles makes the place for the files of jobs.
func (r *resourceNode) keepFiles(l launch.Config) {
	most := l.Policy.MaxOutput
	if most == 0 {
		most = launch.DefaultMaxOutput
	}
	r.depot = stage.NewDepot(stage.DepotConfig{Agent: r.cred.ID, Root: l.Root, Output: most, Grant: r.grant, Log: r.log})
	r.files = r.depot.Send
}

// grant looks a launch up in the goroutine that owns the role.
func (r *resourceNode) grant(ctx context.Context, from protocol.AgentID, k stage.Key) (stage.Grant, error) {
	var g launch.Grant
	found := false
	err := r.runner.Do(ctx, func(_ time.Time, role agents.Role) protocol.Output {
		g, found = role.(*resource.Role).Launches().Grant(from, k.Contract, k.Unit, k.Launch)
		return protocol.Output{}
	})
	switch {
	case err != nil:
		return stage.Grant{}, &stage.Refusal{Code: protocol.CodeUnavailable, Note: err.Error()}
	case !found:
		return stage.Grant{}, &stage.Refusal{Code: protocol.CodeUnknown, Note: "no such launch of yours here"}
	}
	return stage.Grant{Job: g.Job, Staging: g.Staging(), Over: g.Over, Inputs: g.Inputs, Outputs: g.Outputs}, nil
}

// serveFiles lets buyers bring and fetch files, and follow what is printed.
func (r *resourceNode) serveFiles(cfg *mesh.Config) {
	cfg.Files = func(s *mesh.Stream) error { return r.depot.Serve(r.life, s.Agent(), s) }
}

// keepJob is the hidden command that runs one job of the local driver.
const keepJob = "keep-job"

// keeper is this program as the keeper of a job.
func keeper() []string {
	path := os.Args[0]
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil // without a working directory no jobs are run
	}
	return []string{abs, keepJob}
}

func newKeepJob() *cobra.Command {
	return &cobra.Command{
		Use: keepJob + " DIR", Short: "Run the job of a directory (for the local driver)", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return local.Keep(args[0]) },
	}
}
