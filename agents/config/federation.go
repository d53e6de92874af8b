package config

import (
	"cmp"
	"errors"
	"runtime"
	"slices"

	"ramp/agents/exit"
	"ramp/agents/queue/slurm"
	"ramp/agents/resource/federation"
	"ramp/agents/resource/launch"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/rfql/jobfile"
)

// Federation is a site's part in a federation whose members share cores by priority (003).
type Federation struct {
	Rules    string `yaml:"rules,omitempty"`     // the file that all members have
	Cores    int    `yaml:"cores,omitempty"`     // of the machine, for the federation; they are not sold
	MemoryMB int64  `yaml:"memory_mb,omitempty"` // most that suspended jobs may keep; 0: no bound
}

// ReadRules reads a federation's rules file.
func ReadRules(path string) (rules.Rules, error) {
	text, err := words.ReadBounded(nil, path, jobfile.MaxFile)
	if err != nil {
		return rules.Rules{}, err
	}
	r, err := rules.Read(text)
	var faults jobfile.Faults
	if errors.As(err, &faults) {
		return r, exit.Fail(exit.Usage, "", "%s", faults.In(path))
	}
	return r, err
}

// Federation is the site's part in a federation; without modules it is in none.
func (c *Config) Federation(self protocol.AgentID, maxInput int64) (federation.Config, error) {
	f := c.Resource.Federation
	switch {
	case f == (Federation{}):
		return federation.Config{}, nil
	case f.Rules == "" || f.Cores < 1:
		return federation.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.federation: want rules: FILE and cores: 1 or more")
	case c.Resource.Driver == "local" && f.Cores > cmp.Or(c.Resource.Local.Cores, runtime.NumCPU()):
		return federation.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.federation.cores %d: want at most local.cores, %d", f.Cores, cmp.Or(c.Resource.Local.Cores, runtime.NumCPU()))
	case f.MemoryMB < 0:
		return federation.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.federation.memory_mb %d: want 0 or more", f.MemoryMB)
	case !slices.Contains([]string{"local", "slurm"}, c.Resource.Driver):
		return federation.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.federation: driver %s cannot suspend jobs; local and slurm can", c.Resource.Driver)
	case c.Resource.Driver == "slurm" && c.Resource.Slurm.HoldBy == string(slurm.HoldJob):
		return federation.Config{}, exit.Fail(exit.Usage, "", "configuration: resource.federation: want slurm.hold_by: reservation; a program in a placeholder job cannot be suspended")
	}
	r, err := ReadRules(c.Path(f.Rules))
	if err != nil {
		return federation.Config{}, err
	}
	if !r.Member(self) {
		return federation.Config{}, exit.Fail(exit.Usage, "all members need the same file", "%s: this site, %s, is not among the sites", c.Path(f.Rules), self)
	}
	part := federation.Config{Self: self, Modules: f.Cores, Rules: r, Memory: f.MemoryMB * megabyte, Input: cmp.Or(maxInput, launch.DefaultMaxInput)}
	if c.Resource.Driver == "slurm" { // it ends the jobs in a reservation with it
		part.Longest = federation.MaxClaim / 2
	}
	return part, nil
}
