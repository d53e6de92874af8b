package config_test

import (
	"strings"
	"testing"

	"ramp/agents/config"
)

func TestAFederationNeedsADriverThatSuspends(t *testing.T) {
	in := config.Federation{Rules: "rules.yaml", Cores: 1}
	for want, r := range map[string]config.Resource{
		"driver swf cannot suspend jobs; local and slurm can": {Driver: "swf", Federation: in},
		"want slurm.hold_by: reservation":                     {Driver: "slurm", Slurm: config.Slurm{HoldBy: "job"}, Federation: in},
		"want rules: FILE and cores: 1 or more":               {Driver: "local", Federation: config.Federation{Cores: 1}},
		"federation.cores 3: want at most local.cores, 2":     {Driver: "local", Local: config.Local{Cores: 2}, Federation: config.Federation{Rules: "rules.yaml", Cores: 3}},
		"memory_mb -1: want 0 or more":                        {Driver: "local", Federation: config.Federation{Rules: "rules.yaml", Cores: 1, MemoryMB: -1}},
	} {
		if _, err := (&config.Config{Resource: &r}).Federation("s@x", 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
