package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"ramp/agents"
	"ramp/agents/again"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// begun returns the ID of the purchase that an earlier copy of an order made, so that a
// repeated order is not bought twice: a purchase with its ID in any state, or one of the same
// session whose command has ended. Without such a purchase it returns "".
func (u userAgent) begun(q control.BuyCall) (string, error) {
	var candidates []string
	refusal := error(nil)
	err := u.journal.Each(user.TablePurchases, func(id string, value []byte) error {
		if id != q.ID && (q.Named || q.Session == "") {
			return nil
		}
		row, err := user.ReadRow(value)
		switch {
		case err == nil && id == q.ID:
			refusal = again.Refused(q, row)
			return errFound
		case err == nil && again.Of(q, row):
			candidates = append(candidates, id)
		}
		return err
	})
	if errors.Is(err, errFound) {
		u.owners.Take(q.ID, q.Command)
		return q.ID, refusal
	}
	if err == nil && q.Program != nil && !q.Named && q.Session != "" {
		err = u.journal.Each(user.TableRuns, func(id string, value []byte) error {
			run, err := user.ReadRun(value)
			if err == nil && again.Continues(q, run) {
				candidates = append(candidates, id)
			}
			return err
		})
	}
	for _, id := range slices.Backward(candidates) {
		if u.owners.Take(id, q.Command) {
			return id, err
		}
	}
	return "", err
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
