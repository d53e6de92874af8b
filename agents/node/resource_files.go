package node

import (
	"cmp"
	"context"
	"time"

	"ramp/agents"
	"ramp/agents/mesh"
	"ramp/agents/queue"
	"ramp/agents/resource"
	"ramp/agents/resource/launch"
	"ramp/agents/stage"
	"ramp/protocol"
)

func (r *Resource) keepFiles(l launch.Config) {
	most := cmp.Or(l.Policy.MaxOutput, launch.DefaultMaxOutput)
	r.depot = stage.NewDepot(stage.DepotConfig{Agent: r.Cred.ID, Root: l.Root, Output: most, Grant: r.grant, Known: r.knows, TakeBack: queue.TakeBack, Log: r.Log})
	r.files = r.depot.Send
}

// knows asks the role for a launch. If the role cannot answer now, the launch is kept.
func (r *Resource) knows(ctx context.Context, job string) bool {
	known, err := agents.Read(ctx, r.Runner, func(_ time.Time, role *resource.Role) bool { return role.Launches().Knows(job) })
	return known || err != nil
}

// grant looks a launch up in the goroutine that owns the role.
func (r *Resource) grant(ctx context.Context, from protocol.AgentID, k stage.Key) (stage.Grant, error) {
	var g launch.Grant
	found := false
	err := r.Runner.Do(ctx, func(_ time.Time, role agents.Role) protocol.Output {
		g, found = role.(*resource.Role).Launches().Grant(from, k.Contract, k.Unit, k.Launch)
		return protocol.Output{}
	})
	switch {
	case err != nil:
		return stage.Grant{}, &stage.Refusal{Code: protocol.CodeUnavailable, Note: err.Error()}
	case !found:
		return stage.Grant{}, &stage.Refusal{Code: protocol.CodeUnknown, Note: "no such launch of yours here"}
	}
	return stage.Grant{Job: g.Job, Staging: g.Staging(), Over: g.Over, Head: g.Unpaid, Inputs: g.Inputs, Outputs: g.Outputs}, nil
}

// serveFiles lets buyers bring and fetch files, and follow what is printed.
func (r *Resource) serveFiles(cfg *mesh.Config) {
	cfg.Files = func(s *mesh.Stream) error { return r.depot.Serve(r.life, s.Agent(), s, s.Refused) }
}
