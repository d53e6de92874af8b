package reserve

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// inquiries ask the banks which contracts name the seller.
//
// A journal may be lost, or replaced by a copy that is older than some sales, and nothing in it
// shows that. So the seller asks all its banks, and sells nothing until each has answered. It asks
//
//   - at its start, and when its clock is set back far;
//   - when a hold ends that the journal has as unsold: it may have been
//     countersigned and settled since the journal was written;
//   - once more when all holds from before the start have ended. A bank settles
//     nothing after settle-by, which comes before the end of every hold by the
//     agreed skew. So reservations that neither journal nor banks know by then
//     belong to nobody.
//
// The seller also asks about contracts whose last slot is over, as long as it may
// report their jobs: the bank may still owe it the payment.
type inquiries struct {
	trust    bool      // TrustJournal: never ask
	began    time.Time // start of this process
	final    time.Time // nothing from before the start can be settled later
	list     []*inquiry
	restored []*claim // from the journal
}

// inquiry is the dialogue with one bank.
type inquiry struct {
	bank     protocol.AgentID
	askedAt  time.Time // start of the running round; zero: none runs
	ends     time.Time // start of the next page
	after    protocol.ContractID
	listed   map[string]bool // reservations on the pages so far
	retryAt  time.Time
	retries  int
	answered time.Time // start of the last complete round; zero: none so far
	partial  bool      // the list lacks contracts that an older program settled
	why      string    // reason of the last refusal
}

// begin prepares an inquiry at each bank that the seller deals with.
func (is *inquiries) begin(terms []protocol.Terms) {
	for _, t := range terms {
		if !is.trust && !slices.ContainsFunc(is.list, func(q *inquiry) bool { return q.bank == t.Bank }) {
			is.list = append(is.list, &inquiry{bank: t.Bank})
		}
	}
}

// again asks all banks as at a start.
func (is *inquiries) again(t *turn) {
	is.began, is.final = t.now, t.now.Add(MaxHold+protocol.ClockSkew)
	for _, q := range is.list {
		q.askedAt, q.answered = time.Time{}, time.Time{}
	}
	is.wake(t)
}

// asOf returns when the round began that is the oldest of the banks' last answers.
func (is *inquiries) asOf() time.Time {
	var at time.Time
	for i, q := range is.list {
		if i == 0 || q.answered.Before(at) {
			at = q.answered
		}
	}
	return at
}

// certain reports whether reservations that neither the journal nor the banks know
// belong to nobody. A bank with a partial list cannot tell.
func (is *inquiries) certain() bool {
	return !is.trust && !is.asOf().Before(is.final) && !slices.ContainsFunc(is.list, func(q *inquiry) bool { return q.partial })
}

// nextRound returns when to ask a bank again; zero: never.
func (is *inquiries) nextRound(q *inquiry) time.Time {
	if q.answered.IsZero() {
		return is.began
	}
	var at time.Time
	if q.answered.Before(is.final) {
		at = is.final
	}
	for _, c := range is.restored {
		if c.unsure && c.holdUntil.After(q.answered) {
			at = protocol.Earlier(at, c.holdUntil)
		}
	}
	return at
}

func (is *inquiries) dueAt(q *inquiry) time.Time {
	if q.askedAt.IsZero() {
		return is.nextRound(q)
	}
	return q.retryAt
}

func (is *inquiries) due() time.Time {
	var at time.Time
	for _, q := range is.list {
		at = protocol.Earlier(at, is.dueAt(q))
	}
	return at
}

// wake asks the banks whose turn it is.
func (is *inquiries) wake(t *turn) {
	for _, q := range is.list {
		at := is.dueAt(q)
		switch {
		case at.IsZero() || t.now.Before(at):
		case q.askedAt.IsZero():
			q.askedAt, q.ends, q.after, q.retries, q.listed = t.now, t.now.Add(-protocol.ReportWithin), "", 0, map[string]bool{}
			q.ask(t)
		default:
			q.ask(t)
		}
	}
}

func (q *inquiry) ask(t *turn) {
	t.ask(q.bank, protocol.QueryRef, soldConversation, q.tag(), message.SoldQuery{Ends: q.ends, After: q.after})
	q.retryAt = t.now.Add(backOff(q.retries))
	q.retries++
}

const soldConversation = "sold"

// tag marks the answers to one page of one round.
func (q *inquiry) tag() string {
	return soldConversation + "-" + strconv.FormatInt(q.askedAt.UnixNano(), 36) + "-" + string(q.after)
}

// heard asks a bank at once that has shown a sign of life while its answer is due.
func (is *inquiries) heard(t *turn, bank protocol.AgentID) {
	for _, q := range is.list {
		if q.bank == bank && !q.askedAt.IsZero() {
			q.retries = 0
			q.ask(t)
		}
	}
}

// asked returns the running inquiry that a message answers, or nil.
func (is *inquiries) asked(m protocol.Message) *inquiry {
	i := slices.IndexFunc(is.list, func(q *inquiry) bool {
		return q.bank == m.Sender && !q.askedAt.IsZero() && m.InReplyTo == q.tag()
	})
	if i < 0 {
		return nil
	}
	return is.list[i]
}

// page takes a page of a bank's list. It asks for the next page, or reports that
// the round is complete.
func (q *inquiry) page(t *turn, body message.SoldList) (complete bool) {
	n := len(body.Sold)
	if !body.More || n == 0 {
		return true
	}
	q.ends, q.after, q.retries = body.Sold[n-1].Ends, body.Sold[n-1].Contract, 0
	q.ask(t)
	return false
}

// complete ends a round. The seller asks about units that are sold in an older
// journal and that the bank does not list: they were refunded since.
func (is *inquiries) complete(t *turn, q *inquiry) {
	for _, c := range is.restored {
		pr := c.deal.contract
		if q.partial || c.state != ClaimSold || pr == nil || pr.sale.Bundle.Bank != q.bank || q.listed[c.id] || !c.item.Slot.End.After(q.askedAt) {
			continue
		}
		t.ask(q.bank, protocol.QueryRef, c.deal.conversation, "", message.OutcomeQuery{Contract: pr.sale.Verified.ID})
	}
	q.answered, q.askedAt, q.listed, q.why = q.askedAt, time.Time{}, nil, ""
}

// refused notes why a bank gave no list; the seller asks again.
func (is *inquiries) refused(m protocol.Message, body message.Refusal) {
	if !strings.HasPrefix(m.InReplyTo, soldConversation+"-") {
		return
	}
	for _, q := range is.list {
		if q.bank == m.Sender && m.InReplyTo == q.tag() && len(body.Reasons) > 0 {
			q.why = body.Reasons[0].Words()
		}
	}
}
