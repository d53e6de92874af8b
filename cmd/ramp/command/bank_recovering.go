package command

import (
	"context"
)

// recoveringWords say how a bank stands that was restored.
const recoveringWords = "it was restored from a backup and is in recovery: it settles nothing"

// recoveringHelp says what ends that.
const recoveringHelp = "'ramp bank recovery end', when sellers and users have brought back their receipts"

// recovering reports whether a bank's daemon says that it is in recovery.
func recovering(ctx context.Context, daemon *caller) bool {
	ctx, cancel := context.WithTimeout(ctx, statusCallTime)
	defer cancel()
	var v policiesView
	err := daemon.call(ctx, "POST", "/v1/policies", nil, &v)
	return err == nil && v.Recovering
}

// checkRecovery looks whether a bank that runs has to be let out of recovery.
func (p *patient) checkRecovery(ctx context.Context) {
	if p.cfg.Bank != nil && p.daemon != nil && recovering(ctx, p.daemon) {
		p.bad("recovery", recoveringHelp, "%s", recoveringWords)
	}
}

// warnRecovering logs that the bank is in recovery, which outlives restarts.
func (b *bankNode) warnRecovering(ctx context.Context) {
	if v, err := b.policies(ctx, struct{}{}); err == nil && v.Recovering {
		b.log.Warn(recoveringWords, "do", recoveringHelp)
	}
}
