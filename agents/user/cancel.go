package user

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// cancelPrefix marks the reply-with of a request to take a unit back; the unit
// follows, and when it was first asked.
const cancelPrefix = "cancel-"

// maxCancels bounds cancellations going on at once.
const maxCancels = 1 << 12

// cancelKey names one unit of one purchase.
type cancelKey struct {
	purchase string
	unit     int
}

// cancellation is a settled unit that its seller is asked to take back.
type cancellation struct {
	key     cancelKey
	row     *Row // shared by the units of a purchase
	request protocol.Message
	retryAt time.Time
	tries   int
}

// maxCancelTries is how often a seller is asked before the owner is told that it
// does not answer. The money may be on its way, so it is asked on.
const maxCancelTries = 8

// cancel stops a purchase that goes on, or asks the sellers of a settled one to
// take its units back.
func (r *Role) cancel(now time.Time, c message.CancelPurchase) protocol.Output {
	if p := r.purchases[c.ID]; p != nil {
		return r.stop(now, p)
	}
	row, err := ReadRow(c.Row)
	if err != nil || row.Purchase.ID != c.ID || !row.Purchase.Settled {
		return protocol.Output{} // the control socket has looked before
	}
	going := &row
	if other := r.awaitedRow(c.ID); other != nil {
		going = other // the journal's may be older
	} else if other := r.cancelling(c.ID); other != nil {
		going = other // likewise
	} else if other := r.lostRow(c.ID); other != nil {
		going = other
	}
	out := r.stopLost(now, c.ID, c.Unit)
	for i := range going.Purchase.Units {
		u := &going.Purchase.Units[i]
		if c.Unit >= 0 && c.Unit != u.Unit {
			continue
		}
		if asked := r.cancels[cancelKey{c.ID, u.Unit}]; asked != nil {
			out.Send = append(out.Send, asked.afresh(now)) // its owner waits for it again
		}
		if u.State != StateSettled || len(r.cancels) >= maxCancels {
			continue
		}
		u.State = StateCancelling
		out.Send = append(out.Send, r.askCancel(now, cancelKey{c.ID, u.Unit}, going))
	}
	if len(out.Send) == 0 {
		return r.tellCancel(*going)
	}
	out.Save = append(out.Save, saveRow(*going))
	return out.Join(r.wakeCancels(now)).Join(r.tellCancel(*going))
}

// afresh asks at once, and from the start: the owner is told again if no answer comes.
func (c *cancellation) afresh(now time.Time) protocol.Message {
	c.tries, c.retryAt = 0, now.Add(protocol.RetryFirst)
	return c.request
}

// patience is until when an answer is awaited before the owner is told that none comes;
// zero: that was told.
func (c *cancellation) patience() time.Time {
	if c.tries >= maxCancelTries {
		return time.Time{}
	}
	until := c.retryAt
	for tries := c.tries + 1; tries < maxCancelTries; tries++ {
		until = until.Add(retryAfter(tries))
	}
	return until
}

// retryAfter is the pause after so many tries.
func retryAfter(tries int) time.Duration {
	return min(protocol.RetryMost, protocol.RetryFirst<<min(tries, maxCancelTries))
}

// cancelling is the row that the cancellations of a purchase share.
func (r *Role) cancelling(id string) *Row {
	for key, c := range r.cancels { // in any order: they share one
		if key.purchase == id {
			return c.row
		}
	}
	return nil
}

// tellCancel tells how a purchase stands; it is done when no unit of it is being
// cancelled any more.
func (r *Role) tellCancel(row Row) protocol.Output {
	until, going := r.cancelsUntil(row.Purchase.ID)
	if !going {
		return tellRow(row, "done")
	}
	row.Purchase.Until = until
	return tellRow(row, "cancelling")
}

// cancelsUntil is until when the sellers of a purchase have to answer before its owner
// is told that one does not, and whether any is asked.
func (r *Role) cancelsUntil(id string) (until time.Time, going bool) {
	for key, c := range r.cancels { // in any order: the latest counts
		if key.purchase != id {
			continue
		}
		going = true
		if at := c.patience(); at.After(until) {
			until = at
		}
	}
	return until, going
}

// stop gives up a purchase: bidding ends, votes are cancelled; for a signed
// bundle the bank is asked to void it, and decides.
func (r *Role) stop(now time.Time, p *purchase) protocol.Output {
	p.stopped = true
	if p.coord == nil {
		return r.advance(now, p, protocol.Output{})
	}
	out := p.coord.Abandon(now).Join(p.coord.Annul())
	return r.advance(now, p, out)
}

// askCancel signs the request to take one unit back.
func (r *Role) askCancel(now time.Time, key cancelKey, row *Row) protocol.Message {
	c := &cancellation{key: key, row: row, retryAt: now.Add(protocol.RetryFirst)}
	u := unitOf(row, key.unit)
	c.request = protocol.Message{
		Performative: protocol.Request, Sender: r.ID(), Receivers: []protocol.AgentID{u.Seller},
		Protocol: protocol.ProtocolRequest, Conversation: key.purchase,
		ReplyWith: fmt.Sprintf("%s%d-%d", cancelPrefix, key.unit, now.UnixNano()), Body: r.cancelNote(now, row.Purchase.Contract, key),
	}
	r.cancels[key] = c
	return c.request
}

func (r *Role) cancelNote(now time.Time, id protocol.ContractID, key cancelKey) message.UnitCancellation {
	nonce := sha256.Sum256([]byte(fmt.Sprintf("cancel\x00%s\x00%d", id, key.unit)))
	note := contract.Cancel{
		Version: contract.NoteVersion, Contract: id, Unit: key.unit, User: r.ID(), At: now.UTC(),
		Nonce: hex.EncodeToString(nonce[:16]),
	}
	der, err := contract.SignNote(r.cfg.Credential, note, now)
	if err != nil {
		panic(fmt.Sprintf("user: cancel unit %d of %s: %v", key.unit, id, err))
	}
	v, err := contract.OpenNote[contract.Cancel](der, r.cfg.Trust, now)
	if err != nil {
		panic(fmt.Sprintf("user: own signature on a cancellation: %v", err))
	}
	return message.UnitCancellation{Signed: v}
}

func unitOf(row *Row, unit int) *message.PurchasedUnit {
	for i := range row.Purchase.Units {
		if row.Purchase.Units[i].Unit == unit {
			return &row.Purchase.Units[i]
		}
	}
	return nil
}

// cancellationOf finds the cancellation that a message answers. A refusal counts
// only for the very request that it answers: one of an earlier try, which was too
// early, may arrive late. A receipt counts whichever request brought it.
func (r *Role) cancellationOf(m protocol.Message) *cancellation {
	tag, ok := strings.CutPrefix(m.InReplyTo, cancelPrefix)
	if !ok {
		return nil
	}
	number, _, _ := strings.Cut(tag, "-")
	unit, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	c := r.cancels[cancelKey{m.Conversation, unit}]
	if c == nil || c.request.Receivers[0] != m.Sender {
		return nil
	}
	if _, refused := m.Body.(message.Refusal); refused && m.InReplyTo != c.request.ReplyWith {
		return nil
	}
	return c
}

// cancelAnswered takes a seller's no, or the bank's receipt that it passes on.
func (r *Role) cancelAnswered(c *cancellation, m protocol.Message) protocol.Output {
	u := unitOf(c.row, c.key.unit)
	switch body := m.Body.(type) {
	case message.Refusal:
		if m.Performative == protocol.Failure {
			return protocol.Output{} // it cannot now; it is asked again
		}
		backToSettled(u)
		c.row.Purchase.Why = "cancellation refused"
		if len(body.Reasons) > 0 {
			c.row.Purchase.Why += ": " + string(body.Reasons[0].Code) + " " + body.Reasons[0].Note
		}
	case message.Decision:
		refund, ok := refundOf(body, c)
		if !ok {
			return protocol.Output{} // agreed, but not refunded yet
		}
		u.State = StateCancelled
		c.row.Purchase.RefundTotal += refund.Amount
		c.row.Purchase.Why = ""
	default:
		return protocol.Output{}
	}
	delete(r.cancels, c.key)
	r.forgetEnded(c.row)
	out := protocol.Output{Save: []protocol.Record{saveRow(*c.row)}}
	if d, ok := m.Body.(message.Decision); ok && ofItsBank(&c.row.Purchase, d.Receipt) {
		out.Save = append(out.Save, reserve.LaterRecords(c.row.Purchase.ID, *d.Receipt)...)
	}
	return out.Join(r.tellCancel(*c.row))
}

// backToSettled ends the cancellation of a unit, unless the unit has ended since.
func backToSettled(u *message.PurchasedUnit) {
	if u.State == StateCancelling {
		u.State = StateSettled
	}
}

func refundOf(d message.Decision, c *cancellation) (protocol.Refund, bool) {
	if d.Receipt == nil || d.Receipt.Receipt.Contract != c.row.Purchase.Contract || d.Receipt.Receipt.Bank != c.row.Purchase.Bank {
		return protocol.Refund{}, false
	}
	for _, f := range d.Receipt.Receipt.Refunds {
		if f.Unit == c.key.unit {
			return f, true
		}
	}
	return protocol.Refund{}, false
}

// wakeCancels asks again where no answer has come, until the slot is over.
func (r *Role) wakeCancels(now time.Time) protocol.Output {
	var out protocol.Output
	for _, key := range r.cancelOrder() {
		c := r.cancels[key]
		switch {
		case now.Before(c.retryAt):
			out.WakeAt = protocol.Earlier(out.WakeAt, c.retryAt)
		case !unitOf(c.row, key.unit).End.After(now):
			out = out.Join(r.giveUpCancel(key, c))
		default:
			out = out.Join(r.cancelAgain(now, c))
		}
	}
	return out
}

func (r *Role) cancelAgain(now time.Time, c *cancellation) protocol.Output {
	c.tries++
	c.retryAt = now.Add(retryAfter(c.tries))
	out := protocol.Output{Send: []protocol.Message{c.request}, WakeAt: c.retryAt}
	if c.tries == maxCancelTries { // the owner need not wait for it
		c.row.Purchase.Why = "the seller does not answer the cancellation yet; it is asked until the slot is over"
		out = out.Join(tellRow(*c.row, "done"))
	}
	return out
}

// cancelOrder is every cancellation going on, in a fixed order.
func (r *Role) cancelOrder() []cancelKey {
	keys := make([]cancelKey, 0, len(r.cancels))
	for k := range r.cancels {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b cancelKey) int {
		return cmp.Or(strings.Compare(a.purchase, b.purchase), cmp.Compare(a.unit, b.unit))
	})
	return keys
}

func (r *Role) giveUpCancel(key cancelKey, c *cancellation) protocol.Output {
	delete(r.cancels, key)
	backToSettled(unitOf(c.row, key.unit))
	c.row.Purchase.Why = "the seller does not answer the cancellation"
	return protocol.Output{Save: []protocol.Record{saveRow(*c.row)}}.Join(r.tellCancel(*c.row))
}

// restoreCancels goes on with the cancellations of a purchase after a restart.
func (r *Role) restoreCancels(now time.Time, row *Row) protocol.Output {
	var out protocol.Output
	for _, u := range row.Purchase.Units {
		if u.State == StateCancelling {
			out.Send = append(out.Send, r.askCancel(now, cancelKey{row.Purchase.ID, u.Unit}, row))
		}
	}
	return out.Join(r.wakeCancels(now))
}

func tellRow(row Row, event string) protocol.Output {
	p := purchase{view: row.Purchase}
	out := p.tell(event)
	progress := out.Send[0].Body.(message.Progress)
	progress.Done, progress.Purchase.Until = event == "done", row.Purchase.Until
	out.Send[0].Body = progress
	return out
}
