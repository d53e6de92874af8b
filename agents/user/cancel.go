package user

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// cancelPrefix marks the reply-with of a cancellation; the unit follows, and when
// it was first requested.
const cancelPrefix = "cancel-"

// maxCancels bounds cancellations under way at once.
const maxCancels = 1 << 12

// maxCancelTries is how often a seller is asked before the owner learns that it
// does not answer. The refund may be on its way, so the agent keeps asking.
const maxCancelTries = 8

// cancels holds the cancellations that are under way.
type cancels struct {
	cfg   *Config
	usage *usage
	by    map[cancelKey]*cancellation
}

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

func (c *cancellation) unit() *Unit { return c.row.unit(c.key.unit) }

// start asks the sellers of a purchase to take its units back; unit -1: all.
func (r *cancels) start(now time.Time, row *Row, unit int) protocol.Output {
	var out protocol.Output
	for i := range row.Units {
		u := &row.Units[i]
		if unit >= 0 && unit != u.Unit {
			continue
		}
		key := cancelKey{row.ID, u.Unit}
		if c := r.by[key]; c != nil {
			c.tries, c.retryAt = 0, now.Add(protocol.RetryFirst) // its owner waits for it again
			out.Send = append(out.Send, c.request)
		}
		if u.State != StateSettled || len(r.by) >= maxCancels {
			continue
		}
		u.State = StateCancelling
		out.Send = append(out.Send, r.add(now, key, row))
	}
	if len(out.Send) > 0 {
		out.Save = append(out.Save, row.save())
		out = out.Join(r.wake(now))
	}
	return out.Join(r.report(row))
}

// warnAt is when the owner learns that the seller does not answer; zero: it has learnt that.
func (c *cancellation) warnAt() time.Time {
	if c.tries >= maxCancelTries {
		return time.Time{}
	}
	at := c.retryAt
	for tries := c.tries + 1; tries < maxCancelTries; tries++ {
		at = at.Add(retryAfter(tries))
	}
	return at
}

// maxDoublings bounds how often a pause doubles.
const maxDoublings = 8 // RetryFirst doubled so often is above RetryMost

// retryAfter is the pause after a number of tries.
func retryAfter(tries int) time.Duration {
	return min(protocol.RetryMost, protocol.RetryFirst<<min(tries, maxDoublings))
}

// row is the row that the cancellations of a purchase share; nil without any.
func (r *cancels) row(id string) *Row {
	for key, c := range r.by { // in any order: they share one
		if key.purchase == id {
			return c.row
		}
	}
	return nil
}

// report shows a purchase to its owner. It is done when none of its units is being
// cancelled any more.
func (r *cancels) report(row *Row) protocol.Output {
	var until time.Time
	event := "done"
	for key, c := range r.by { // in any order: the latest counts
		if key.purchase == row.ID {
			event, until = "cancelling", protocol.Later(until, c.warnAt())
		}
	}
	return row.report(event, until)
}

// add signs the request to take one unit back.
func (r *cancels) add(now time.Time, key cancelKey, row *Row) protocol.Message {
	c := &cancellation{key: key, row: row, retryAt: now.Add(protocol.RetryFirst)}
	tag := fmt.Sprintf("%s%d-%d", cancelPrefix, key.unit, now.UnixNano())
	c.request = request(r.cfg.self(), c.unit().Seller, key.purchase, tag, r.note(now, row.Contract, key.unit))
	r.by[key] = c
	return c.request
}

func (r *cancels) note(now time.Time, id protocol.ContractID, unit int) message.UnitCancellation {
	nonce := sha256.Sum256([]byte(fmt.Sprintf("cancel\x00%s\x00%d", id, unit)))
	signed, err := signNote(r.cfg, now, contract.Cancel{Version: contract.NoteVersion, Contract: id, Unit: unit, User: r.cfg.self(), At: now.UTC(), Nonce: hex.EncodeToString(nonce[:16])})
	if err != nil {
		panic(fmt.Sprintf("user: sign the cancellation of unit %d of %s: %v", unit, id, err))
	}
	return message.UnitCancellation{Signed: signed}
}

// of finds the cancellation that a message answers. A refusal counts only for the
// very request that it answers: one of an earlier try, which was too early, may
// arrive late. A receipt counts whichever request brought it.
func (r *cancels) of(m protocol.Message) *cancellation {
	tag, ok := strings.CutPrefix(m.InReplyTo, cancelPrefix)
	if !ok {
		return nil
	}
	number, _, _ := strings.Cut(tag, "-")
	unit, err := strconv.Atoi(number)
	if err != nil {
		return nil
	}
	c := r.by[cancelKey{m.Conversation, unit}]
	if c == nil || c.request.Receivers[0] != m.Sender {
		return nil
	}
	if _, refused := m.Body.(message.Refusal); refused && m.InReplyTo != c.request.ReplyWith {
		return nil
	}
	return c
}

// answered takes a seller's refusal, or the bank's receipt that it passes on.
func (r *cancels) answered(c *cancellation, m protocol.Message) protocol.Output {
	p := &c.row.Purchase
	var records []protocol.Record
	switch body := m.Body.(type) {
	case message.Refusal:
		if m.Performative == protocol.Failure {
			return protocol.Output{} // it cannot now; it is asked again
		}
		p.Why = c.unit().Resource + " refused"
		if len(body.Reasons) > 0 {
			p.Why += ": " + cmp.Or(body.Reasons[0].Note, string(body.Reasons[0].Code))
		}
	case message.Decision:
		refund, ok := refundOf(body, c)
		if !ok {
			return protocol.Output{} // agreed, but not refunded yet
		}
		c.unit().State = StateCancelled
		p.RefundTotal += refund.Amount
		p.Why = ""
		if fromBankOf(p, body.Receipt) {
			records = reserve.LaterRecords(p.ID, *body.Receipt)
		}
	default:
		return protocol.Output{}
	}
	out := r.end(c)
	out.Save = append(out.Save, records...)
	return out
}

// end ends a cancellation. Its unit is settled again, unless it was refunded or has ended since.
func (r *cancels) end(c *cancellation) protocol.Output {
	delete(r.by, c.key)
	if u := c.unit(); u.State == StateCancelling {
		u.State = StateSettled
	}
	r.usage.forgetEnded(c.row)
	return protocol.Output{Save: []protocol.Record{c.row.save()}}.Join(r.report(c.row))
}

func refundOf(d message.Decision, c *cancellation) (protocol.Refund, bool) {
	if d.Receipt == nil || d.Receipt.Receipt.Contract != c.row.Contract || d.Receipt.Receipt.Bank != c.row.Bank {
		return protocol.Refund{}, false
	}
	for _, f := range d.Receipt.Receipt.Refunds {
		if f.Unit == c.key.unit {
			return f, true
		}
	}
	return protocol.Refund{}, false
}

// wake asks again where no answer has come, until the slot is over.
func (r *cancels) wake(now time.Time) protocol.Output {
	var out protocol.Output
	inOrder := func(a, b cancelKey) int {
		return cmp.Or(strings.Compare(a.purchase, b.purchase), cmp.Compare(a.unit, b.unit))
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.by), inOrder) {
		c := r.by[key]
		switch {
		case now.Before(c.retryAt):
			out.WakeAt = protocol.Earlier(out.WakeAt, c.retryAt)
		case !c.unit().End.After(now):
			c.row.Why = "the seller does not answer the cancellation"
			out = out.Join(r.end(c))
		default:
			out = out.Join(c.retry(now))
		}
	}
	return out
}

func (c *cancellation) retry(now time.Time) protocol.Output {
	c.tries++
	c.retryAt = now.Add(retryAfter(c.tries))
	out := protocol.Output{Send: []protocol.Message{c.request}, WakeAt: c.retryAt}
	if c.tries == maxCancelTries { // the owner need not wait for it
		c.row.Why = "the seller does not answer the cancellation yet; it is asked until the slot is over"
		out = out.Join(c.row.report("done", time.Time{}))
	}
	return out
}

// restore resumes the cancellations of a purchase after a restart.
func (r *cancels) restore(now time.Time, row *Row) protocol.Output {
	var out protocol.Output
	for _, u := range row.Units {
		if u.State == StateCancelling {
			out.Send = append(out.Send, r.add(now, cancelKey{row.ID, u.Unit}, row))
		}
	}
	return out.Join(r.wake(now))
}

// request asks another agent; tag is the reply-with.
func request(self, to protocol.AgentID, conversation, tag string, body protocol.Body) protocol.Message {
	return protocol.Message{Performative: protocol.Request, Sender: self, Receivers: []protocol.AgentID{to}, Protocol: protocol.ProtocolRequest, Conversation: conversation, ReplyWith: tag, Body: body}
}

// signNote signs a note with the agent's own key.
func signNote[T contract.Note](cfg *Config, now time.Time, note T) (s contract.VerifiedNote[T], err error) {
	der, err := contract.SignNote(cfg.Credential, note, now)
	if err != nil {
		return s, err
	}
	return contract.OpenNote[T](der, cfg.Trust, now)
}
