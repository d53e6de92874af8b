package node

import (
	"context"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// cancel asks for a purchase, or a unit of it, to be taken back, and sends every change
// until that is decided.
func (u userAgent) cancel(ctx context.Context, q control.IDCall, send func(control.ProgressLine) error) error {
	f, stop := u.hub.Follow(q.ID)
	defer stop()
	taken, err := u.cancelOnce(ctx, q)
	for ; err == nil && !taken; taken, err = u.cancelOnce(ctx, q) {
		if _, err := f.Next(ctx); err != nil { // its end, which is being written
			return exit.WithCode(exit.Failed, err)
		}
	}
	if err != nil {
		return err
	}
	return report(ctx, f, send)
}

// cancelOnce orders a cancellation of the purchase that the journal has. The order is not
// taken if the purchase has ended but its end is not in the journal yet, since no progress
// would follow; the purchase's followers get the end once it is written.
func (u userAgent) cancelOnce(ctx context.Context, q control.IDCall) (taken bool, err error) {
	value, err := u.row(user.TablePurchases, q.ID)
	if err != nil {
		return false, err
	}
	settled, err := mayCancel(value, q.Unit)
	if err != nil {
		return false, err
	}
	err = u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		if taken = settled || r.(*user.Role).Going(q.ID); !taken {
			return protocol.Output{}
		}
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Performative: protocol.Request,
			Body: message.CancelPurchase{ID: q.ID, Unit: q.Unit - 1, Row: value}})
	})
	if err != nil {
		return false, exit.WithCode(exit.Failed, err)
	}
	return taken, nil
}

// mayCancel reports whether a purchase is settled, or why one that is over has nothing to cancel.
func mayCancel(value []byte, unit int) (settled bool, err error) {
	row, err := user.ReadRow(value)
	if err != nil {
		return false, err
	}
	p := row.View()
	switch p.State {
	case user.StateSettled, user.StateBidding, user.StateApproval, user.StateVoting, user.StateConfirming, user.StateDeciding:
	default:
		return false, exit.Fail(exit.Nothing, "", "purchase %s is %s: there is nothing to cancel", p.ID, p.State)
	}
	if unit < 0 || p.Settled && unit > len(p.Units) {
		return false, exit.Fail(exit.Usage, "", "purchase %s has units 1..%d, not %d", p.ID, len(p.Units), unit)
	}
	open := false
	for _, u := range p.Units {
		// One that an earlier command has begun to cancel is waited for.
		open = open || (unit == 0 || u.Unit == unit-1) && (u.State == user.StateSettled || u.State == user.StateCancelling || u.Again != "")
	}
	switch {
	case !p.Settled || open:
		return p.Settled, nil
	case unit == 0:
		return false, exit.Fail(exit.Nothing, "", "every unit of %s is cancelled already", p.ID)
	}
	return false, exit.Fail(exit.Nothing, "", "unit %d of %s is cancelled already", unit, p.ID)
}
