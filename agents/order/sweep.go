package order

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
)

// SweepFiles adds to a plan the program that its command runs, if that is a file here, and makes sure
// that all inputs are here. dir is the directory of the plan.
func SweepFiles(p *plan.Plan, dir string) error {
	if len(p.Command) > 0 {
		bringProgram(p, dir)
	}
	for _, in := range p.AllInputs() {
		source, _ := node.SourceOf(sweeper.Below(dir, in.Spec))
		if _, err := os.Stat(source); err != nil {
			return exit.Fail(exit.Usage, "", "%s: input %s: %w", in.Where, in.Spec, err)
		}
	}
	return nil
}

// bringProgram adds the program of a command to the inputs, unless one of them brings it.
func bringProgram(p *plan.Plan, dir string) {
	source, name := needs(dir, p.Command)
	if source == "" {
		return
	}
	for _, in := range p.Inputs {
		from, as, named := strings.Cut(in, "=")
		if !named {
			as = path.Base(from)
		}
		if name == as || strings.HasPrefix(name, as+"/") {
			return
		}
	}
	if source == p.Command[0] {
		p.Command[0] = "./" + name
	}
	p.Bring(filepath.ToSlash(source)+"="+name, "command")
}
