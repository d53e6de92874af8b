package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// WordTime is how long a bank has for the answer to an owner's word, while somebody waits.
const WordTime = 10 * time.Second

// usage takes the owner's word, and answers the purchase when the bank has answered.
func (u userAgent) usage(ctx context.Context, q control.UsageCall) (message.Purchase, error) {
	p, err := u.show(ctx, control.IDCall{ID: q.ID})
	if err != nil {
		return p, err
	}
	if err := mayJudge(p, q); err != nil {
		return p, err
	}
	told := map[int]bool{} // units whose answer goes to the bank
	for _, u := range p.Units {
		told[u.Unit] = user.Judged(u) && q.About(u)
	}
	if err := u.order(ctx, message.OwnerWord{ID: q.ID, Unit: q.Unit - 1, Record: q.Record, Agree: q.Agree, Why: q.Why}); err != nil {
		return p, err
	}
	again := time.NewTicker(control.BusyPause)
	defer again.Stop()
	late := time.After(WordTime)
	for {
		p, err = u.show(ctx, control.IDCall{ID: q.ID})
		if err != nil || !slices.ContainsFunc(p.Units, func(u message.PurchasedUnit) bool { return u.Word != "" && told[u.Unit] }) {
			return p, cmp.Or(err, refusedWord(p, q, told))
		}
		select {
		case <-again.C:
		case <-late:
			return p, exit.Fail(exit.Unreachable, "'ramp user show "+q.ID+"' shows when it has", "%s does not answer; your answer about the usage of %s is saved and sent again until it does", p.Bank.Name(), q.ID)
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
}

// refusedWord is why the bank refused the owner's answer for the units; nil if it did not.
func refusedWord(p message.Purchase, q control.UsageCall, told map[int]bool) error {
	word := message.WordDispute
	if q.Agree {
		word = message.WordAgree
	}
	for _, u := range p.Units {
		if told[u.Unit] && user.Judged(u) && u.Heard != word {
			return exit.Fail(exit.Refused, "", "%s", cmp.Or(p.Why, "the bank did not accept it"))
		}
	}
	return nil
}

// mayJudge reports why there is nothing to agree to.
func mayJudge(p message.Purchase, q control.UsageCall) error {
	switch {
	case q.Unit < 0 || q.Unit > len(p.Units):
		return exit.Fail(exit.Usage, "", "purchase %s has units 1..%d, not %d", p.ID, len(p.Units), q.Unit)
	case !q.Agree && q.Why == "":
		return exit.Fail(exit.Usage, "--why 'it printed nothing'", "a dispute needs a reason for the operator")
	case len(q.Why) > contract.MaxWhy:
		return exit.Fail(exit.Usage, "", "--why has %d bytes: want at most %d", len(q.Why), contract.MaxWhy)
	}
	about := slices.DeleteFunc(slices.Clone(p.Units), func(u message.PurchasedUnit) bool { return !q.About(u) })
	if slices.ContainsFunc(about, user.Judged) {
		return nil
	}
	if q.Agree && len(about) > 0 && !slices.ContainsFunc(about, func(u message.PurchasedUnit) bool { return u.How != protocol.EndAgreed }) {
		return exit.Fail(exit.Nothing, "'ramp user show "+p.ID+"' shows it", "the usage of purchase %s is agreed already", p.ID)
	}
	if q.Record != "" {
		return exit.Fail(exit.Nothing, "'ramp user show "+p.ID+"' shows what is filed now", "the usage record of purchase %s is another now, or is decided", p.ID)
	}
	return exit.Fail(exit.Nothing, "with 'ask_usage: true' under 'user:' in config.yaml you decide records yourself; a new one may take minutes to arrive", "purchase %s has no usage record to decide", p.ID)
}
