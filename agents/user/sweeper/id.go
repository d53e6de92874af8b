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

// Ordered is the order of a sweep, with its inputs as it sends them.
func (s *Sweeps) Ordered(id string) (o message.SweepOrder, found bool) {
	x, found := s.by[id]
	if found {
		o = x.Order
		o.Plan, _ = json.Marshal(x.Plan) // it was decoded
	}
	return o, found
}

// is reports whether an order is this sweep, by its digest: with the first inputs, or those of the last retry.
func (x *live) is(digest string) bool { return digest == x.Digest || digest == x.Renewed }

// Joined is the ID of the sweep that a repeated order goes on with: a retry with other inputs keeps its old ID.
func (s *Sweeps) Joined(o message.SweepOrder) string {
	same := func(id string) bool { return s.by[id].is(ID("", o)) && s.by[id].dry == nil && !s.by[id].Killed }
	if i := slices.IndexFunc(s.order, same); s.by[o.ID] == nil && i >= 0 {
		return s.order[i]
	}
	return o.ID
}

// Complete adds to an order its inputs, as read describes them now, and its ID if it has none. check says
// whether a site could take a task's program.
func Complete(o *message.SweepOrder, read func(spec string) ([]message.RunInput, error), check func(id string, p *message.Program) error) (plan.Plan, error) {
	p, err := Parse(*o)
	if err != nil {
		return p, err
	}
	old := o.Inputs
	if !filepath.IsAbs(o.Out) || !filepath.IsAbs(o.Dir) && old == nil {
		return p, fmt.Errorf("directories %q and %q: want absolute paths", o.Out, o.Dir)
	}
	o.Inputs = map[string][]message.RunInput{} // a task may run with the old ones
	for _, in := range p.AllInputs() {
		specs := []string{Below(o.Dir, in.Spec)}
		if o.Dir == "" { // begun by an earlier version, which did not keep it: read the old files
			specs = nil
			for _, f := range old[in.Spec] {
				specs = append(specs, f.Source+"="+f.File.Path)
			}
		}
		for _, spec := range specs {
			list, err := read(spec)
			if err != nil {
				return p, err
			}
			o.Inputs[in.Spec] = append(o.Inputs[in.Spec], list...)
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
