package config

import (
	"cmp"
	"errors"
	"log/slog"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"ramp/agents/exit"
	"ramp/agents/queue"
	program "ramp/agents/queue/command"
	"ramp/agents/queue/pbs"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
)

// openSlurm makes a driver of a partition of a Slurm cluster.
func openSlurm(c *Config, agent protocol.AgentID, log *slog.Logger) (Driver, error) {
	cfg := c.Slurm(agent, log)
	if c.Resource.Jobs != nil {
		root, err := c.jobsRoot()
		if err != nil {
			return Driver{}, err
		}
		cfg.Jobs = root
	}
	d, err := slurm.Open(cfg)
	return batch("slurm", d, err, c.Resource.Slurm.Cores, func() (int, error) { return slurm.Cores(cfg) })
}

// Slurm is the configuration of the driver for Slurm.
func (c *Config) Slurm(agent protocol.AgentID, log *slog.Logger) slurm.Config {
	s := c.Resource.Slurm
	return slurm.Config{
		Agent: agent, Partition: s.Partition, Users: c.runners(s.Users), Hold: slurm.Hold(s.HoldBy), Dir: c.Dir, Conf: c.absolute(s.Conf), Prefix: s.Prefix,
		Limit: time.Duration(s.TimeLimit), Poll: time.Duration(s.Poll), Now: time.Now, Slog: log,
	}
}

// runners lists the local accounts that run jobs in sold slots: the named ones and those of
// launches. Empty: only the agent's own.
func (c *Config) runners(named []string) []string {
	list := slices.Clone(named)
	if c.Resource.Jobs == nil {
		return list
	}
	for _, a := range c.Resource.Jobs.Accounts {
		names := c.Resource.Jobs.users(a)
		if self, err := user.Current(); names[0] == "" && err == nil {
			names = []string{self.Username}
		}
		for _, name := range names {
			if name != "" && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

func openPBS(c *Config, agent protocol.AgentID, log *slog.Logger) (Driver, error) {
	cfg := c.pbs(agent, log)
	d, err := pbs.Open(cfg)
	return batch("pbs", d, err, c.Resource.PBS.Cores, func() (int, error) { return pbs.Cores(cfg) })
}

func (c *Config) pbs(agent protocol.AgentID, log *slog.Logger) pbs.Config {
	s := c.Resource.PBS
	return pbs.Config{
		Agent: agent, Users: c.runners(s.Users), Conf: c.absolute(s.Conf), Prefix: s.Prefix,
		Limit: time.Duration(s.TimeLimit), Poll: time.Duration(s.Poll), Now: time.Now, Slog: log,
	}
}

// openCommand makes a driver of the site's own program.
func openCommand(c *Config, agent protocol.AgentID, log *slog.Logger) (Driver, error) {
	cfg := c.program(agent, log)
	d, err := program.Open(cfg)
	return batch("command", d, err, c.Resource.Command.Cores, func() (int, error) { return program.Cores(cfg) })
}

func (c *Config) program(agent protocol.AgentID, log *slog.Logger) program.Config {
	s := c.Resource.Command
	return program.Config{
		Agent: agent, Program: c.absolute(s.Program), Args: s.Args, Dir: c.Dir,
		Limit: time.Duration(s.TimeLimit), Poll: time.Duration(s.Poll), Now: time.Now, Slog: log,
	}
}

// checkBatch checks the section of a batch driver, without asking the batch system.
func (c *Config) checkBatch(agent protocol.AgentID) error {
	var err error
	cores := 0
	switch r := c.Resource; r.Driver {
	case "slurm":
		err, cores = c.Slurm(agent, Quiet()).Validate(), r.Slurm.Cores
	case "pbs":
		err, cores = c.pbs(agent, Quiet()).Validate(), r.PBS.Cores
	case "command":
		err, cores = c.program(agent, Quiet()).Validate(), r.Command.Cores
	}
	if err != nil {
		return exit.Fail(exit.Usage, "", "configuration: resource.%w", err)
	}
	return checkCores(c.Resource.Driver, cmp.Or(cores, 1)) // 0: the batch system is asked
}

func checkCores(driver string, cores int) error {
	if cores < 1 || cores > protocol.MaxCores {
		return exit.Fail(exit.Usage, "", "configuration: resource.%s.cores: %d, want 1..%d", driver, cores, protocol.MaxCores)
	}
	return nil
}

// AskCores asks the batch system of a site how many cores it has. Logs and this machine
// are not asked. Errors: it does not answer.
func (c *Config) AskCores(agent protocol.AgentID) (cores int, err error) {
	switch r := c.Resource; r.Driver {
	case "slurm":
		cores, err = slurm.Cores(c.Slurm(agent, Quiet()))
	case "pbs":
		cores, err = pbs.Cores(c.pbs(agent, Quiet()))
	case "command":
		cores, err = program.Cores(c.program(agent, Quiet()))
	}
	if err != nil {
		return 0, exit.Fail(exit.Unreachable, "is it running, and may this account use it?", "the batch system (%s) does not answer: %s", c.Resource.Driver, queue.OneLine([]byte(err.Error())))
	}
	return cores, nil
}

// batch is a driver with its number of cores: the configured one, or the batch system's.
func batch(name string, d queue.Driver, err error, cores int, count func() (int, error)) (Driver, error) {
	if err != nil {
		return Driver{}, exit.Fail(exit.Usage, "", "configuration: resource.%w", err)
	}
	if cores == 0 {
		if cores, err = count(); err != nil {
			return Driver{}, exit.Fail(exit.Unreachable, "set resource."+name+".cores to start while the batch system does not answer", "%w", err)
		}
	}
	if err := checkCores(name, cores); err != nil {
		return Driver{}, err
	}
	return Driver{Driver: d, Cores: cores}, nil
}

// absolute resolves a path of the configuration; "" stays "".
func (c *Config) absolute(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(c.Path(path))
	if err != nil { // no working directory: the driver refuses the path and names it
		return c.Path(path)
	}
	return abs
}

// Held says how the batch system would hold a sold slot.
type Held struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`            // the batch system can do it
	Why  string `json:"why,omitempty"` // if not; or what it does not promise
}

// Held asks a site's batch system whether it answers, says what a sold slot will be in it,
// and tries whether this account can make one. Errors: it does not answer.
func (c *Config) Held(self protocol.AgentID) (Held, error) {
	if _, err := c.AskCores(self); err != nil {
		return Held{}, err
	}
	switch c.Resource.Driver {
	case "slurm":
		return holdInSlurm(c.Slurm(self, Quiet())), nil
	case "pbs":
		return Held{What: "a reservation", OK: true}, nil
	case "local":
		return Held{What: "a claim that all agents of this machine respect", OK: true, Why: "nothing keeps other processes off its cores"}, nil
	case "command":
		return Held{What: "what the program makes of it", OK: true}, nil
	}
	return Held{What: "a reservation of the machine that plays the log", OK: true}, nil
}

func holdInSlurm(cfg slurm.Config) Held {
	if cfg.Hold == slurm.HoldJob {
		return Held{What: "a placeholder job", OK: true, Why: "Slurm does not promise that it starts in time; a slot that does not begin within a minute is refunded"}
	}
	h := Held{What: "a reservation", OK: true}
	switch err := slurm.MayReserve(cfg); {
	case errors.Is(err, slurm.ErrForbidden):
		h.OK, h.Why = false, queue.OneLine([]byte(err.Error()))+": make it an operator, set resource.slurm.prefix, or set hold_by: job"
	case err != nil:
		h.OK, h.Why = false, "a trial failed: "+queue.OneLine([]byte(err.Error()))
	}
	return h
}
