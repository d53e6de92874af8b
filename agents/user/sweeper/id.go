package sweeper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ramp/agents/user/sweep/plan"
	"ramp/protocol"
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

// Inputs are the inputs of a sweep, as it sends them.
func (s *Sweeps) Inputs(id string) (map[string][]message.RunInput, bool) {
	x := s.by[id]
	if x == nil {
		return nil, false
	}
	return x.Order.Inputs, true
}

// Renewed are inputs as describe finds them now.
func Renewed(old map[string][]message.RunInput, describe func(source, path string) (protocol.StagedFile, error)) (map[string][]message.RunInput, error) {
	inputs := map[string][]message.RunInput{}
	for spec, list := range old {
		inputs[spec] = slices.Clone(list) // one task may run with the old ones
		for i, in := range list {
			var err error
			if inputs[spec][i].File, err = describe(in.Source, in.File.Path); err != nil {
				return nil, err
			}
		}
	}
	return inputs, nil
}

// renew replaces the inputs of a sweep, if there are others. Its digest becomes that of an order with them.
func (x *live) renew(inputs map[string][]message.RunInput) {
	if inputs == nil {
		return
	}
	x.Order.Inputs = inputs
	o := x.Order
	o.Plan, _ = json.Marshal(x.Plan) // it was decoded
	x.Digest = ID("", o)
}

// Joined is the ID of the sweep that a repeated order goes on with: a retry with other inputs keeps its old ID.
func (s *Sweeps) Joined(o message.SweepOrder) string {
	same := func(id string) bool { return s.by[id].Digest == ID("", o) && s.by[id].dry == nil && !s.by[id].Killed }
	if i := slices.IndexFunc(s.order, same); s.by[o.ID] == nil && i >= 0 {
		return s.order[i]
	}
	return o.ID
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
