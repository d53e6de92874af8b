package command

import (
	"context"
	"net/http"
	"time"

	"ramp/agents"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// cancel asks for a purchase, or a unit of it, to be taken back, and answers
// every change until that is decided.
func (u userAgent) cancel(w http.ResponseWriter, r *http.Request) {
	q, err := readBody[idCall](w, r)
	if err != nil {
		refuseCall(w, err)
		return
	}
	f, stop := u.hub.follow(q.ID)
	defer stop()
	taken, err := u.cancelOnce(r.Context(), q)
	for ; err == nil && !taken; taken, err = u.cancelOnce(r.Context(), q) {
		if _, err := f.next(r.Context()); err != nil { // its end, which is being written
			refuseCall(w, withCode(exitFailed, err))
			return
		}
	}
	if err != nil {
		refuseCall(w, err)
		return
	}
	u.report(w, r, f)
}

// cancelOnce orders a cancellation, as the journal has the purchase. It is not
// taken if the purchase has come to its end and the journal did not say so yet:
// then nobody would ever tell of it. Its followers hear of the end once that is
// written.
func (u userAgent) cancelOnce(ctx context.Context, q idCall) (taken bool, err error) {
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
		return false, withCode(exitFailed, err)
	}
	return taken, nil
}

// mayCancel reports whether a purchase is settled, or why one that is over has
// nothing to cancel.
func mayCancel(value []byte, unit int) (settled bool, err error) {
	row, err := user.ReadRow(value)
	if err != nil {
		return false, err
	}
	p := row.Purchase
	switch p.State {
	case user.StateSettled, user.StateBidding, user.StateApproval, user.StateVoting, user.StateConfirming, user.StateDeciding:
	default:
		return false, fail(exitNothing, "", "purchase %s is %s: there is nothing to cancel", p.ID, p.State)
	}
	if unit < 0 || p.Settled && unit > len(p.Units) {
		return false, fail(exitUsage, "", "purchase %s has units 1..%d, not %d", p.ID, len(p.Units), unit)
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
		return false, fail(exitNothing, "", "every unit of %s is cancelled already", p.ID)
	}
	return false, fail(exitNothing, "", "unit %d of %s is cancelled already", unit, p.ID)
}
