package agent

import (
	"context"

	"ramp/cmd/ramp/cli"
)

// checkBank checks whether a running bank needs its operator.
func (p *examination) checkBank(ctx context.Context) {
	if p.cfg.Bank == nil || p.daemon == nil {
		return
	}
	if t := cli.TroubleOf(ctx, p.daemon); t.Words != "" {
		p.bad(t.What, t.Help, "%s", t.Words)
	}
}
