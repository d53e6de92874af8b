package command

import (
	"context"
	"errors"
)

// errGone is of a call to an agent that ended under it.
var errGone = errors.New("the agent's daemon ended before it answered")

// goneHint holds for every command: orders are noted, and questions change nothing.
const goneHint = "'ramp status' says whether it runs again; the same command finds what was begun"

// gone is why a call did not come to its end: the caller had enough, or the daemon ended.
func (c *caller) gone(ctx context.Context, err error) error {
	if !c.daemon || ctx.Err() != nil {
		return err
	}
	return &exitError{code: exitUnreachable, err: errGone, hint: goneHint}
}

// stopping is what a handler's error means to who called: one that was cut off was so
// by its daemon's end.
func stopping(err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return fail(exitUnreachable, goneHint, "the agent is just stopping")
}
