package command

import (
	"context"
	"time"

	"ramp/protocol"
)

// trouble is what a bank that runs has, and what helps. The zero one is none.
type trouble struct{ what, words, help string }

// troubleOf is what a bank's daemon says that it has.
func troubleOf(ctx context.Context, daemon *caller) trouble {
	ctx, cancel := context.WithTimeout(ctx, statusCallTime)
	defer cancel()
	var v policiesView
	if daemon.call(ctx, "POST", "/v1/policies", nil, &v) != nil {
		return trouble{}
	}
	return v.trouble()
}

func (v policiesView) trouble() trouble {
	switch {
	case v.Recovering:
		return trouble{
			"recovery",
			"it was restored from a backup and is in recovery: it settles nothing",
			"'ramp bank recovery end', when sellers and users have brought back their receipts",
		}
	case !v.Latest.IsZero():
		return trouble{
			"ledger's time",
			"its last entry is of " + v.Latest.Format(time.RFC3339) + ", and this machine's clock is behind that: entries are dated so, and incomes stand still, until it has caught up",
			"set this machine's clock; if it was ahead before and is right now, nothing is to be done",
		}
	}
	return trouble{}
}

// checkBank looks whether a bank that runs waits for its operator.
func (p *patient) checkBank(ctx context.Context) {
	if p.cfg.Bank == nil || p.daemon == nil {
		return
	}
	if t := troubleOf(ctx, p.daemon); t.words != "" {
		p.bad(t.what, t.help, "%s", t.words)
	}
}

// warnTrouble logs what outlives restarts.
func (b *bankNode) warnTrouble(ctx context.Context) {
	v, err := b.policies(ctx, struct{}{})
	if t := v.trouble(); err == nil && t.words != "" {
		b.log.Warn(t.words, "do", t.help)
	}
}

// behind is the time of the last entry, if the clock is so far behind it that it was
// set back; honest clocks differ by less.
func behind(now, latest time.Time) time.Time {
	if latest.Sub(now) <= protocol.ClockSkew {
		return time.Time{}
	}
	return latest
}
