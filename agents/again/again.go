// Package again recognises an order that repeats an earlier one, and bids again for one that
// lost a race.
//
// Two commands of the same words are two orders. A command repeats an earlier one only if
// that was given in the same terminal session, has not shown its result, and has ended: its
// owner interrupted it, or something killed it. Outside a terminal, an order is recognised by
// the ID that its owner gave it, or by a session that the environment names.
package again

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// maxFollowed bounds the orders whose commands are remembered; those that have ended go first.
const maxFollowed = 1 << 13

// Owners knows which command follows each order. The zero value knows none.
type Owners struct {
	mu sync.Mutex
	by map[string]string // control.CommandKey, by the ID of the order
}

// Take makes a command the follower of an order, unless another that lives is.
func (o *Owners) Take(id, command string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.by[id]; now != "" && process(now) != process(command) && control.CommandLives(now) {
		return false
	}
	if o.by == nil {
		o.by = map[string]string{}
	}
	if len(o.by) >= maxFollowed {
		maps.DeleteFunc(o.by, func(_, command string) bool { return !control.CommandLives(command) })
	}
	if command != "" && len(o.by) < maxFollowed {
		o.by[id] = command
	}
	return true
}

// follows reports whether a living command follows an order.
func (o *Owners) follows(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.by[id] != "" && control.CommandLives(o.by[id])
}

// process is the part of a key that all orders of one command share.
func process(key string) string { return key[:max(0, strings.LastIndexByte(key, '.'))] }

// Of reports whether a purchase that was begun before may be what an order repeats: it was
// ordered in the same session, may still be bought, and is for the same.
func Of(q control.BuyCall, row user.Row) bool {
	switch {
	case q.Named || q.Session == "" || detached(row.Order.Program) || row.Order.Session != q.Session || !row.Live() || key(row.Order.Program) != key(q.Program):
		return false
	case q.Program != nil:
		return true
	}
	return sameOrder(q, row)
}

// Continues reports whether a run that was begun before is what an order repeats: its result
// was not shown, and its command was to wait for it.
func Continues(q control.BuyCall, run message.Run) bool {
	return !q.Named && q.Session != "" && q.Program != nil && !run.Collected && !run.Program.Detached && run.Program.Key == q.Program.Key
}

// Refused refuses a different order under an ID that was used before. The journal does not keep the
// request of an order that failed before it called any seller.
func Refused(q control.BuyCall, row user.Row) error {
	if !q.Named || q.Follows || len(row.Order.Document) == 0 || sameOrder(q, row) && sameProgram(row.Order.Program, q.Program) {
		return nil
	}
	return exit.Fail(exit.Usage, fmt.Sprintf("'ramp user show %s' shows that one; give this one an ID of its own", q.ID),
		"id %q: the purchase of this name (%s, %s) asked for something else", q.ID, row.Purchase.RFQ, row.Purchase.State)
}

// sameProgram reports whether two orders run the same program. The current contents of their
// inputs do not count.
func sameProgram(x, y *message.Program) bool {
	if x == nil || y == nil {
		return x == y
	}
	return x.App == y.App && slices.Equal(x.Params, y.Params) && slices.Equal(x.Command, y.Command) &&
		slices.EqualFunc(x.Commands, y.Commands, slices.Equal[[]string])
}

// key is the same for the same command in the same session; "" without a program.
func key(p *message.Program) string {
	if p == nil {
		return ""
	}
	return p.Key
}

// SessionKey is the key of a command in a session.
func SessionKey(command, session string) string { return command + "." + session }

// sameElsewhere reports whether two keys are of the same command in different sessions.
func sameElsewhere(x, y string) bool {
	a, _, _ := strings.Cut(x, ".")
	b, _, _ := strings.Cut(y, ".")
	return a != "" && a == b && (!strings.HasPrefix(x, y) || strings.HasSuffix(y, "."))
}

// detached reports whether the command of a program does not wait for its end.
func detached(p *message.Program) bool { return p != nil && p.Detached }

// sameOrder reports whether an order asks for what a purchase was begun for. Times that
// were counted from now are the same if they lie as far ahead as then.
func sameOrder(q control.BuyCall, row user.Row) bool {
	moved := time.Duration(0)
	if q.Moving {
		moved = time.Since(row.Purchase.Created)
	}
	return SameRequest(row.Order, []byte(q.Document), q.StartNow, moved)
}

// movedWithin is how exactly times that were counted from now are compared.
const movedWithin = time.Minute

// follows puts y in the place of x if it is as much later as time has passed.
func follows(x *time.Time, y time.Time, moved time.Duration) {
	if moved != 0 && !x.IsZero() && !y.IsZero() && (y.Sub(*x)-moved).Abs() <= movedWithin {
		*x = y
	}
}

// SameRequest reports whether a document asks for the same as an order. A start that was written in
// when it was bought (now), or a list price for want of a ceiling, is no difference.
func SameRequest(x message.Buy, y []byte, now bool, moved time.Duration) bool {
	a, _, errA := rfql.Read(x.Document)
	b, _, errB := rfql.Read(y)
	if doc, err := rfql.Check(b, time.Time{}); err == nil && len(x.Listed) > 0 { // then x was written anew
		b, _, errB = rfql.Read(doc.XML())
	}
	if errA != nil || errB != nil || len(a.Requests) != len(b.Requests) {
		return false
	}
	for i := range a.Requests {
		follows(&a.Requests[i].NotBefore, b.Requests[i].NotBefore, moved)
		follows(&a.Requests[i].End, b.Requests[i].End, moved)
		if b.Requests[i].Price == 0 && slices.Contains(x.Listed, i) {
			a.Requests[i].Price = 0
		}
		if now && b.Requests[i].Wall == 0 {
			a.Requests[i].NotBefore, b.Requests[i].NotBefore = time.Time{}, time.Time{}
		}
	}
	return a.Objective == b.Objective && slices.Equal(a.Requests, b.Requests)
}

// Bounds of bidding again after a lost race. Pauses double up to the longest.
const (
	MaxBids    = 32
	bidFirst   = 100 * time.Millisecond
	bidLongest = 5 * time.Second
	buyingTime = 10 * time.Second // a purchase takes at most before its job could start
)

// Lost reports whether a purchase lost a race: others took what its sellers had offered, it was
// over when the owner approved it, or its contract was not signed by all in time. Bidding again
// may find something else.
func Lost(p message.Purchase) bool {
	failed := slices.Contains([]protocol.Code{protocol.CodeBusy, protocol.CodeHoldLimit, protocol.CodeExpired, protocol.CodeSettleBy}, p.Refused)
	return p.State == user.StateFailed && failed || p.State == user.StateVoid && p.Void == protocol.CodeSettleBy
}

// approvedLater is how much later than approved a purchase may begin without another question.
const approvedLater = time.Minute

// approved makes an order buy without another question what its owner has approved: at most for
// that total, and about as soon.
func approved(o *message.Options, p message.Purchase) {
	wait := time.Duration(0)
	for _, u := range p.Units {
		wait = max(wait, u.Start.Sub(p.Created)+approvedLater)
	}
	if o.MaxWait == 0 || wait < o.MaxWait {
		o.MaxWait = wait
	}
	if o.MaxCost == 0 || p.Total < o.MaxCost {
		o.MaxCost = p.Total
	}
	o.Confirm = false
}

// Pause is the time before bid number n, from 2. Chance keeps buyers that failed together
// from colliding again.
func Pause(n int) time.Duration {
	pause := bidFirst << min(n-2, 6)
	return rand.N(min(pause, bidLongest)) + time.Millisecond
}

// Next is the order that bids again after q, under a number of its own: that of the first
// purchase and how often it was bid for. ok is false if what was asked for cannot begin any
// more. A start that was written in because the document has none moves along. An owner who
// had approved the lost purchase is asked again only if the next costs more or begins later.
func Next(now time.Time, first string, n int, q control.BuyCall, lost message.Purchase) (_ control.BuyCall, ok bool) {
	draft, _, err := rfql.Read([]byte(q.Document))
	if err != nil {
		return q, false
	}
	for i := range draft.Requests {
		if r := &draft.Requests[i]; q.StartNow && r.Wall == 0 {
			r.NotBefore = time.Time{}
		}
	}
	doc, err := rfql.Check(draft, now.Add(buyingTime))
	if err != nil {
		return q, false
	}
	q.ID, q.Document = BidID(first, n), string(doc.XML())
	if q.Options.Confirm {
		approved(&q.Options, lost)
	}
	return q, true
}

// BidID is the ID of bid number n, from 2, for a purchase.
func BidID(first string, n int) string { return fmt.Sprintf("%s.bid%d", first, n) }
