package node

import (
	"context"
	"slices"
	"time"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/queue"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
)

// typicals are what buyers often ask of a machine: cores as a share of it, or of
// a node.
func typicals(cores, node int) []control.TypicalAnswer {
	if node < 1 || node > cores {
		node = cores
	}
	const hour, day = 60, 24 * 60
	list := []control.TypicalAnswer{
		{Request: "one core", Cores: 1, Wall: hour, Within: 6 * hour},
		{Request: "one node", Cores: node, Wall: 4 * hour, Within: day},
		{Request: "a quarter of the machine", Cores: max(1, cores/4), Wall: hour, Within: day},
		{Request: "half of the machine", Cores: max(1, cores/2), Wall: 12 * hour, Within: 3 * day},
		{Request: "the whole machine", Cores: cores, Wall: hour, Within: 7 * day},
	}
	return slices.CompactFunc(list, func(a, b control.TypicalAnswer) bool {
		return a.Cores == b.Cores && a.Wall == b.Wall && a.Within == b.Within
	})
}

func (r *Resource) dryRun(ctx context.Context, _ struct{}) (control.DryRunAnswer, error) {
	price, err := protocol.ParseCredits(r.Cfg.Resource.StartPrice)
	if err != nil {
		return control.DryRunAnswer{}, err
	}
	a := control.DryRunAnswer{Price: max(price, 1), Hold: r.hold(), Offers: typicals(r.driver.Cores, r.Cfg.Resource.Properties.NodeCores)}
	for i := range a.Offers {
		o := &a.Offers[i]
		b, err := o.Document(time.Now(), a.Price)
		if err != nil {
			return a, err
		}
		lines, err := r.check(ctx, control.CheckCall{Document: string(b), Rounds: 1})
		if err != nil {
			return a, err
		}
		if len(lines) > 0 {
			o.Line = lines[0]
		}
	}
	s, err := r.status(ctx, struct{}{})
	a.Sales, a.Why = s.Sales, s.Why
	return a, err
}

// hold says what a sold slot will be, and tries whether it can be made.
func (r *Resource) hold() control.HoldAnswer {
	switch s := r.Cfg.Resource.Slurm; r.Cfg.Resource.Driver {
	case "slurm":
		if s.HoldBy == string(slurm.HoldJob) {
			return control.HoldAnswer{What: "a placeholder job", OK: true, Why: "Slurm does not promise that it starts in time; a slot that does not begin within a minute is refunded"}
		}
		h := control.HoldAnswer{What: "a reservation", OK: true}
		if err := slurm.MayReserve(r.Cfg.Slurm(r.Cred.ID, config.Quiet())); err != nil {
			h.OK, h.Why = false, "this account may not reserve ("+queue.OneLine([]byte(err.Error()))+"): make it an operator, set resource.slurm.prefix, or set hold_by: job"
		}
		return h
	case "pbs":
		return control.HoldAnswer{What: "a reservation", OK: true}
	case "local":
		return control.HoldAnswer{What: "a claim that all agents of this machine respect", OK: true, Why: "nothing keeps other processes off its cores"}
	case "command":
		return control.HoldAnswer{What: "what the program makes of it", OK: true}
	}
	return control.HoldAnswer{What: "a reservation of the machine that plays the log", OK: true}
}
