package command

import (
	"log/slog"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"ramp/agents/queue"
	program "ramp/agents/queue/command"
	"ramp/agents/queue/pbs"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
)

// openSlurm makes a driver of a partition of a Slurm cluster.
func openSlurm(c *config, agent protocol.AgentID, log *slog.Logger) (driver, error) {
	cfg := c.slurm(agent, log)
	if c.Resource.Jobs != nil {
		root, err := c.jobsRoot()
		if err != nil {
			return driver{}, err
		}
		cfg.Jobs = root
	}
	d, err := slurm.Open(cfg)
	return batch("slurm", d, err, c.Resource.Slurm.Cores, func() (int, error) { return slurm.Cores(cfg) })
}

// slurm is the configuration as the driver wants it.
func (c *config) slurm(agent protocol.AgentID, log *slog.Logger) slurm.Config {
	s := c.Resource.Slurm
	return slurm.Config{
		Agent: agent, Partition: s.Partition, Users: c.runners(s.Users), Hold: slurm.Hold(s.HoldBy), Dir: c.dir, Conf: c.absolute(s.Conf), Prefix: s.Prefix,
		Limit: time.Duration(s.TimeLimit), Poll: time.Duration(s.Poll), Now: time.Now, Slog: log,
	}
}

// runners are the accounts that run something in what is sold: those that are
// named, and those of the launches. None: the agent's own.
func (c *config) runners(named []string) []string {
	list := slices.Clone(named)
	if c.Resource.Jobs == nil {
		return list
	}
	for _, a := range c.Resource.Jobs.Accounts {
		name := a.User
		if self, err := user.Current(); name == "" && err == nil {
			name = self.Username
		}
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// openPBS makes a driver of an OpenPBS server.
func openPBS(c *config, agent protocol.AgentID, log *slog.Logger) (driver, error) {
	s := c.Resource.PBS
	cfg := pbs.Config{
		Agent: agent, Users: c.runners(s.Users), Conf: c.absolute(s.Conf), Prefix: s.Prefix,
		Limit: time.Duration(s.TimeLimit), Poll: time.Duration(s.Poll), Now: time.Now, Slog: log,
	}
	d, err := pbs.Open(cfg)
	return batch("pbs", d, err, s.Cores, func() (int, error) { return pbs.Cores(cfg) })
}

// openCommand makes a driver of a program of the site's own.
func openCommand(c *config, agent protocol.AgentID, log *slog.Logger) (driver, error) {
	s := c.Resource.Command
	cfg := program.Config{
		Agent: agent, Program: c.absolute(s.Program), Args: s.Args, Dir: c.dir,
		Limit: time.Duration(s.TimeLimit), Poll: time.Duration(s.Poll), Now: time.Now, Slog: log,
	}
	d, err := program.Open(cfg)
	return batch("command", d, err, s.Cores, func() (int, error) { return program.Cores(cfg) })
}

// batch is a driver with its cores: as configured, or as the batch system says now.
func batch(name string, d queue.Driver, err error, cores int, count func() (int, error)) (driver, error) {
	if err != nil {
		return driver{}, fail(exitUsage, "", "configuration: resource.%w", err)
	}
	if cores == 0 {
		if cores, err = count(); err != nil {
			return driver{}, fail(exitUnreachable, "set resource."+name+".cores to start while the batch system is away", "%w", err)
		}
	}
	if cores < 1 || cores > protocol.MaxCores {
		return driver{}, fail(exitUsage, "", "configuration: resource.%s.cores: %d, want 1..%d", name, cores, protocol.MaxCores)
	}
	return driver{Driver: d, cores: cores}, nil
}

// absolute is a path that was given, as seen from the configuration; none stays
// none.
func (c *config) absolute(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(c.path(path))
	if err != nil { // no working directory: the driver names the path that it refuses
		return c.path(path)
	}
	return abs
}
