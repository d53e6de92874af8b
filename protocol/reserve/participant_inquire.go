package reserve

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// A journal may be lost, or a copy that is older than what was sold. Nothing in
// it tells. So a seller that starts asks its banks which contracts name it, and
// sells nothing until each has answered. It asks
//
//   - at its start;
//   - when the hold of a unit is over that the journal has as held: it may have been
//     countersigned and settled since the journal was written;
//   - once more when all holds of its earlier lives are over. What no bank has
//     settled by then never will be, so what the batch system has under the
//     seller's mark, and neither journal nor banks know, can go.
//
// Contracts of which the last slot is over are asked for as well, as long as a job
// may be reported: what is paid after the fact may not be paid yet.
//
// A bank settles nothing after settle-by, and settle-by and the agreed skew are
// before the end of every hold.

// inquiry is what one bank was asked.
type inquiry struct {
	bank     protocol.AgentID
	askedAt  time.Time // when the round that runs began; zero: none runs
	ends     time.Time // where its next page begins
	after    protocol.ContractID
	listed   map[string]bool // reservations on its pages so far
	retryAt  time.Time
	retries  int
	answered time.Time // when the last whole round was begun; zero: none was answered
	partial  bool      // the bank's list lacks what an older program of it settled
	why      string    // what it said in place of a list
}

// inquiries are one for each bank that the seller deals with.
func inquiries(terms []protocol.Terms) []*inquiry {
	var list []*inquiry
	for _, t := range terms {
		if !slices.ContainsFunc(list, func(q *inquiry) bool { return q.bank == t.Bank }) {
			list = append(list, &inquiry{bank: t.Bank})
		}
	}
	return list
}

// Unasked is why nothing may be sold yet: a bank that has not said which
// contracts name the seller, and what it said instead.
func (p *Participant) Unasked() (bank protocol.AgentID, why string, waits bool) {
	for _, q := range p.inquiries {
		if q.answered.IsZero() {
			return q.bank, q.why, true
		}
	}
	return "", "", false
}

// asOf is when the oldest of the banks' last answers was asked for.
func (p *Participant) asOf() time.Time {
	var at time.Time
	for i, q := range p.inquiries {
		if i == 0 || q.answered.Before(at) {
			at = q.answered
		}
	}
	return at
}

// settled reports whether nothing of an earlier life can be settled any more
// that the banks have not told.
func (p *Participant) settled() bool {
	return !p.cfg.TrustJournal && !p.asOf().Before(p.final)
}

// nextRound is when a bank is to be asked again; zero: not at all.
func (p *Participant) nextRound(q *inquiry) time.Time {
	if q.answered.IsZero() {
		return p.began
	}
	var at time.Time
	if q.answered.Before(p.final) {
		at = p.final
	}
	for _, c := range p.restored {
		if c.unsure && c.holdUntil.After(q.answered) {
			at = protocol.Earlier(at, c.holdUntil)
		}
	}
	return at
}

func (p *Participant) inquiryDue(q *inquiry) time.Time {
	if q.askedAt.IsZero() {
		return p.nextRound(q)
	}
	return q.retryAt
}

// inquire asks the banks that are to be asked now.
func (p *Participant) inquire(t *turn) {
	for _, q := range p.inquiries {
		at := p.inquiryDue(q)
		switch {
		case at.IsZero() || t.now.Before(at):
		case q.askedAt.IsZero():
			p.beginRound(t, q)
		default:
			p.askSold(t, q)
		}
	}
}

func (p *Participant) beginRound(t *turn, q *inquiry) {
	q.askedAt, q.ends, q.after, q.retries, q.listed = t.now, t.now.Add(-protocol.ReportWithin), "", 0, map[string]bool{}
	p.askSold(t, q)
}

func (p *Participant) askSold(t *turn, q *inquiry) {
	m := p.message(q.bank, protocol.QueryRef, protocol.ProtocolRequest, soldConversation, message.SoldQuery{Ends: q.ends, After: q.after})
	m.ReplyWith = q.tag()
	t.send(m)
	q.retryAt = t.now.Add(backOff(q.retries))
	q.retries++
}

const soldConversation = "sold"

// tag tells the answers to one page of one round from all others.
func (q *inquiry) tag() string {
	return soldConversation + "-" + strconv.FormatInt(q.askedAt.UnixNano(), 36) + "-" + string(q.after)
}

// Heard has a bank that has just been heard asked at once, if its answer is
// awaited: it may have been away. One that recovers may have lost records that it filed.
func (p *Participant) Heard(now time.Time, bank protocol.AgentID, recovers bool) protocol.Output {
	t := &turn{now: now}
	if recovers {
		p.fileAgain(t, bank)
	}
	for _, q := range p.inquiries {
		if q.bank == bank && !q.askedAt.IsZero() {
			q.retries = 0
			p.askSold(t, q)
		}
	}
	return p.end(t)
}

// soldList takes a page of what a bank has.
func (p *Participant) soldList(t *turn, m protocol.Message, body message.SoldList) {
	i := slices.IndexFunc(p.inquiries, func(q *inquiry) bool { return q.bank == m.Sender && !q.askedAt.IsZero() })
	if i < 0 || m.InReplyTo != p.inquiries[i].tag() {
		return // to an earlier question, or from nobody who was asked
	}
	q := p.inquiries[i]
	q.partial = !body.Complete
	for _, s := range body.Sold {
		for _, u := range s.Units {
			q.listed[u.Reservation] = true
		}
		p.learn(t, q.bank, s)
	}
	if n := len(body.Sold); body.More && n > 0 {
		q.ends, q.after, q.retries = body.Sold[n-1].Ends, body.Sold[n-1].Contract, 0
		p.askSold(t, q)
		return
	}
	p.missed(t, q)
	q.answered, q.askedAt, q.listed, q.why = q.askedAt, time.Time{}, nil, ""
	p.answeredBy(t)
}

// missed asks what became of the units that an older journal has as sold and the
// bank does not: they were given back since.
func (p *Participant) missed(t *turn, q *inquiry) {
	if q.partial {
		return
	}
	for _, c := range p.restored {
		pr := c.deal.contract
		if c.state != ClaimSold || pr == nil || pr.sale.Bundle.Bank != q.bank || q.listed[c.id] || !c.item.Slot.End.After(q.askedAt) {
			continue
		}
		t.send(p.message(q.bank, protocol.QueryRef, protocol.ProtocolRequest, c.deal.conversation, message.OutcomeQuery{Contract: pr.sale.Verified.ID}))
	}
}

// answeredBy ends holds that nobody bought while the journal was not there, and
// removes what neither the journal nor the banks know.
func (p *Participant) answeredBy(t *turn) {
	asOf := p.asOf()
	if asOf.IsZero() {
		return
	}
	for _, c := range slices.Clone(p.restored) {
		if c.unsure && !c.holdUntil.After(asOf) {
			c.unsure = false
			t.see(c.deal)
			p.expire(t, c.deal)
		}
	}
	p.restored = slices.DeleteFunc(p.restored, func(c *claim) bool { return p.claims[c.id] != c })
	if p.certain() {
		clear(p.swept)
		p.releaseStrangers(t)
	}
}

// certain reports whether what neither the journal nor the banks know is nobody's.
// A bank whose list lacks what it settled long ago cannot tell.
func (p *Participant) certain() bool { return p.settled() && !p.partial() }

// releaseStrangers removes the reservations that nobody has a contract for.
func (p *Participant) releaseStrangers(t *turn) {
	ids := make([]string, 0, len(p.strangers))
	for id := range p.strangers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		delete(p.strangers, id)
		t.save(strangerRecord(id, nil))
		t.send(p.queue(message.Release{ID: id}))
	}
}

func (p *Participant) partial() bool {
	return slices.ContainsFunc(p.inquiries, func(q *inquiry) bool { return q.partial })
}

// notAnswered notes what a bank said in place of a list; it is asked again.
func (p *Participant) notAnswered(m protocol.Message, body message.Refusal) {
	if !strings.HasPrefix(m.InReplyTo, soldConversation+"-") {
		return
	}
	for _, q := range p.inquiries {
		if q.bank == m.Sender && m.InReplyTo == q.tag() && len(body.Reasons) > 0 {
			q.why = string(body.Reasons[0].Code) + ": " + body.Reasons[0].Note
		}
	}
}
