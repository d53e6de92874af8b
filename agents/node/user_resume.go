package node

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// begun returns the ID of the purchase that an earlier copy of an order made, so that a
// repeated order is not bought twice: a purchase with its ID in any state, or an undecided
// one of the same request. For an order that its owner named, only that name counts.
// Without such a purchase it returns "".
func (u userRecords) begun(q control.BuyCall) (string, error) {
	found, refusal := "", error(nil)
	err := u.journal.Each(user.TablePurchases, func(id string, value []byte) error {
		if id != q.ID && q.Named {
			return nil
		}
		row, err := user.ReadRow(value)
		if err == nil && id == q.ID {
			found, refusal = id, orderedAgain(q, row)
			return errFound
		}
		switch {
		case err != nil || !Undecided(row.Purchase.State) || programKey(row.Order.Program) != programKey(q.Program):
		case q.Program != nil || sameOrderAs(q, row):
			found = id
		}
		return err
	})
	if err == nil && found == "" && q.Program != nil && !q.Named {
		return u.running(q.Program.Key)
	}
	if errors.Is(err, errFound) {
		err = refusal
	}
	return found, err
}

// orderedAgain refuses another order under the name of one that was given before. Of one that
// failed before anybody was called, what it asked for is not kept.
func orderedAgain(q control.BuyCall, row user.Row) error {
	if !q.Named || q.Follows || len(row.Order.Document) == 0 || sameOrderAs(q, row) && sameProgram(row.Order.Program, q.Program) {
		return nil
	}
	return exit.Fail(exit.Usage, fmt.Sprintf("'ramp user show %s' shows that one; give this one an ID of its own", q.ID),
		"id %q: the purchase of this name (%s, %s) asked for something else", q.ID, row.Purchase.RFQ, row.Purchase.State)
}

// sameProgram reports whether two orders run the same. What their inputs have in them
// by now is no difference.
func sameProgram(x, y *message.Program) bool {
	if x == nil || y == nil {
		return x == y
	}
	return x.App == y.App && slices.Equal(x.Params, y.Params) && slices.Equal(x.Command, y.Command)
}

// programKey is the same for the same command; "" without a program.
func programKey(p *message.Program) string {
	if p == nil {
		return ""
	}
	return p.Key
}

// running is the run of the same command that is not over, or not shown yet.
func (u userRecords) running(key string) (string, error) {
	found := ""
	err := u.journal.Each(user.TableRuns, func(id string, value []byte) error {
		run, err := user.ReadRun(value)
		if err == nil && !run.Collected && run.Program.Key == key {
			found = id
		}
		return err
	})
	return found, err
}

// Undecided reports whether a purchase in this state may still be bought.
func Undecided(state string) bool {
	switch state {
	case user.StateBidding, user.StateApproval, user.StateVoting, user.StateConfirming, user.StateDeciding:
		return true
	}
	return false
}

// sameOrderAs reports whether an order asks for what a purchase was begun for. Times that
// were counted from now are the same if they lie as far ahead as then.
func sameOrderAs(q control.BuyCall, row user.Row) bool {
	moved := time.Duration(0)
	if q.Moving {
		moved = time.Since(row.Purchase.Created)
	}
	return sameRequest(row.Order.Document, []byte(q.Document), q.StartNow, moved)
}

// movedWithin is how exactly times that were counted from now are compared.
const movedWithin = time.Minute

// follows puts y in the place of x if it is as much later as time has passed.
func follows(x *time.Time, y time.Time, moved time.Duration) {
	if moved != 0 && !x.IsZero() && !y.IsZero() && (y.Sub(*x)-moved).Abs() <= movedWithin {
		*x = y
	}
}

// sameRequest reports whether two documents ask for the same. A start that was
// written in when it was bought (now) is no difference.
func sameRequest(x, y []byte, now bool, moved time.Duration) bool {
	a, _, errA := rfql.Read(x)
	b, _, errB := rfql.Read(y)
	if errA != nil || errB != nil || len(a.Requests) != len(b.Requests) {
		return false
	}
	for i := range a.Requests {
		follows(&a.Requests[i].NotBefore, b.Requests[i].NotBefore, moved)
		follows(&a.Requests[i].End, b.Requests[i].End, moved)
		if now && b.Requests[i].Wall == 0 {
			a.Requests[i].NotBefore, b.Requests[i].NotBefore = time.Time{}, time.Time{}
		}
	}
	return reflect.DeepEqual(a, b)
}

// goOn answers every change of a purchase that was begun before, or how it ended.
func (u userAgent) goOn(ctx context.Context, id string, send func(control.ProgressLine) error) error {
	going := false
	look := func(now time.Time, role agents.Role) protocol.Output {
		if going = role.(*user.Role).Going(id); !going {
			return protocol.Output{}
		}
		again := protocol.Message{Sender: protocol.LocalControl, Performative: protocol.Request, Body: message.Buy{ID: id}}
		return role.Receive(now, again) // it tells how it stands
	}
	f, stop := u.hub.Follow(id)
	defer stop()
	if err := u.runner.Do(ctx, look); err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	if going {
		return report(ctx, f, send)
	}
	p, err := u.show(ctx, control.IDCall{ID: id})
	if err != nil {
		return err
	}
	return send(control.ProgressLine{Event: "done", Done: true, Purchase: p})
}
