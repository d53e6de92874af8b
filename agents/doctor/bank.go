package doctor

import (
	"context"

	"ramp/agents/control"
	"ramp/agents/node"
)

// checkBank checks whether a running bank needs its operator.
func (p *examination) checkBank(ctx context.Context) {
	if p.cfg.Bank == nil || p.daemon == nil {
		return
	}
	if t := TroubleOf(ctx, p.daemon); t.Words != "" {
		p.bad(t.What, t.Help, "%s", t.Words)
	}
}

// TroubleOf asks a bank's daemon what needs its operator.
func TroubleOf(ctx context.Context, daemon *control.Client) node.Trouble {
	ctx, cancel := context.WithTimeout(ctx, control.StatusCallTime)
	defer cancel()
	var v control.PoliciesView
	if control.Policies.Ask(ctx, daemon, struct{}{}, &v) != nil {
		return node.Trouble{}
	}
	return node.TroubleIn(v)
}
