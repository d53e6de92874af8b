package sweeper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"ramp/agents/user/sweep/plan"
	"ramp/protocol/message"
)

// Below is an input of a plan, whose path is relative to a directory.
func Below(dir, spec string) string {
	path, name, named := strings.Cut(spec, "=")
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if named {
		return path + "=" + name
	}
	return path
}

// odd is what a plan's name may have and an ID may not.
var odd = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// ID is the same for the same plan, inputs and directory. It begins with the plan's name. A deadline or
// budget made from a factor depends on the prices of the moment, so the factor counts instead.
func ID(name string, o message.SweepOrder) string {
	var p plan.Plan
	if err := json.Unmarshal(o.Plan, &p); err == nil && (p.DFactor != nil || p.BFactor != nil) {
		if p.DFactor != nil {
			p.Deadline = 0
		}
		if p.BFactor != nil {
			p.Budget = 0
		}
		if o.Plan, err = json.Marshal(p); err != nil {
			panic(fmt.Sprintf("sweeper: a plan cannot be encoded: %v", err)) // it was decoded
		}
	}
	b, err := json.Marshal([]any{o.Plan, o.Out, o.Inputs})
	if err != nil {
		panic(fmt.Sprintf("sweeper: a sweep's inputs cannot be encoded: %v", err)) // strings and numbers only
	}
	sum := sha256.Sum256(b)
	name = strings.Trim(odd.ReplaceAllString(name, "-"), "-_")
	return cmp.Or(name[:min(len(name), 40)], "sweep") + "-" + hex.EncodeToString(sum[:4])
}

// Complete adds to an order its inputs, as described by read, and its ID if it has none. dir is the
// directory of the plan. check says whether a site could take a task's program.
func Complete(o *message.SweepOrder, dir string, read func(spec string) ([]message.RunInput, error), check func(id string, p *message.Program) error) (plan.Plan, error) {
	p, err := Parse(*o)
	if err != nil {
		return p, err
	}
	if !filepath.IsAbs(o.Out) || !filepath.IsAbs(dir) {
		return p, fmt.Errorf("directories %q and %q: want absolute paths", o.Out, dir)
	}
	o.Inputs = map[string][]message.RunInput{}
	for _, in := range p.AllInputs() {
		if o.Inputs[in.Spec], err = read(Below(dir, in.Spec)); err != nil {
			return p, err
		}
	}
	o.ID = cmp.Or(o.ID, ID(p.Name, *o))
	for i := range p.Len() {
		program := Program(p.Task(i), o.Inputs)
		if err := check(o.ID+".t00000.000", &program); err != nil {
			return p, fmt.Errorf("task %d: %w", i+1, err)
		}
	}
	return p, nil
}
