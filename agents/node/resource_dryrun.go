package node

import (
	"context"
	"time"

	"ramp/agents/control"
	"ramp/agents/resource"
)

func (r *Resource) dryRun(ctx context.Context, _ struct{}) (control.DryRunAnswer, error) {
	hold, err := r.Cfg.Held(r.Cred.ID)
	if err != nil {
		return control.DryRunAnswer{}, err
	}
	a := control.DryRunAnswer{Hold: hold, Offers: control.Typicals(r.driver.Cores, r.Cfg.Resource.Properties.NodeCores)}
	if err := r.with(ctx, func(_ time.Time, role *resource.Role) { a.Price = max(role.ListPrice(), 1) }); err != nil {
		return a, err
	}
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
