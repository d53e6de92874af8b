// Package bank is the bank agent: it answers who holds what, gathers the
// countersigned copies of a bundle, and decides it once.
//
// The ledger decides; this role brings it what arrives and carries its answers
// to everybody who waits for them. It never reads a clock, a socket or a file.
// Decisions leave only after the ledger's record is durable.
package bank

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of a bank agent.
const (
	maxWaiting = 1 << 16 // askers that wait for decisions; beyond, they ask again
	maxParked  = 1 << 12 // messages that wait for the store's answer; beyond, all are dropped, and asked again
)

// TablePresence has the counter of the bank's presence.
const TablePresence = "presence"

// Config is what a bank agent is.
type Config struct {
	ID         protocol.AgentID
	Currencies []string
	Grace      time.Duration // pause of expiry after a restart; zero: ledger.DefaultGrace
	Reports    time.Duration // how long after its slot a report is waited for; zero: protocol.ReportWithin
	Heartbeat  time.Duration // between presences; zero: protocol.HeartbeatPeriod

	// Sign signs the operator's acts, the same octets always in the same way; nil:
	// they are not signed. See ledger.Config.
	Sign func(octets []byte) []byte
}

// Role is a bank agent.
type Role struct {
	cfg     Config
	ledger  *ledger.Ledger
	waiting map[protocol.ContractID][]asker
	waits   int
	parked  map[protocol.ContractID][]protocol.Message
	parks   int
	counter uint64
	beatAt  time.Time
}

// asker is who waits for a decision, and in which conversation.
type asker struct {
	to      protocol.AgentID
	request protocol.Message // without its body
}

// New restores a bank from its tables.
func New(cfg Config, t protocol.Tables, now time.Time) (*Role, protocol.Output, error) {
	l, err := ledger.Load(ledger.Config{Bank: cfg.ID, Currencies: cfg.Currencies, Grace: cfg.Grace, ReportWithin: cfg.Reports, Sign: cfg.Sign}, now, t)
	if err != nil {
		return nil, protocol.Output{}, err
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = protocol.HeartbeatPeriod
	}
	r := &Role{
		cfg: cfg, ledger: l, waiting: map[protocol.ContractID][]asker{},
		parked: map[protocol.ContractID][]protocol.Message{},
	}
	if err := t.Each(TablePresence, r.loadCounter); err != nil {
		return nil, protocol.Output{}, err
	}
	r.counter = max(r.counter, uint64(max(now.UnixMicro(), 0))) // a backup has an old one, of which nobody would hear
	out := r.beat(now)
	return r, out.Join(r.alarm()), nil
}

// Ledger is the bank's ledger, to be read in the goroutine that owns the role.
func (r *Role) Ledger() *ledger.Ledger { return r.ledger }

// Receive answers a request.
func (r *Role) Receive(now time.Time, m protocol.Message) protocol.Output {
	return r.handle(now, m).Join(r.alarm())
}

func (r *Role) handle(now time.Time, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.Settlement:
		s := body.Sale
		return r.decideBundle(m, s.Verified, func() (protocol.Receipt, []protocol.Record, error) {
			return r.ledger.Copy(now, s.Verified.ID, s.Bundle, s.Seller.ID)
		})
	case message.Annulment:
		b := body.Bundle
		return r.decideBundle(m, b, func() (protocol.Receipt, []protocol.Record, error) {
			return r.ledger.Void(now, b.ID, b.Bundle, m.Sender)
		})
	case message.RefundRequest:
		return r.refund(now, m, body)
	case message.OutcomeQuery:
		return r.decide(m, body.Contract, func() (protocol.Receipt, []protocol.Record, error) {
			o, err := r.ledger.Outcome(body.Contract)
			return o, nil, err
		})
	case message.FoundOutcome:
		return r.recall(now, m, body)
	case message.JobReport:
		return r.report(now, m, body)
	case message.JobVerdict:
		return r.judge(now, m, body)
	case message.Readmission:
		return r.readmit(now, m, body)
	}
	return r.handleAccount(now, m)
}

// handleAccount answers what is about accounts, and not about one contract.
func (r *Role) handleAccount(now time.Time, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.VoucherRequest:
		return r.voucher(now, m, body)
	case message.QuoteRequest:
		return r.quote(now, m, body)
	case message.ExchangeRequest:
		return r.exchange(now, m, body)
	case message.BalanceQuery:
		return r.balance(now, m)
	case message.StatementQuery:
		return r.statement(m, body)
	case message.ProofQuery:
		return r.proof(m, body)
	case message.FoundProof:
		return r.passProof(m, body)
	case message.SoldQuery:
		return r.sold(m, body)
	case message.Statement, message.SoldList:
		return r.passOn(m, protocol.Inform, body)
	}
	return protocol.Output{} // presences of others, and answers that nobody awaits
}

// Wake voids what is over and tells the market that the bank is there.
func (r *Role) Wake(now time.Time) protocol.Output {
	out := r.expire(now)
	if !now.Before(r.beatAt) {
		out = out.Join(r.beat(now))
	}
	return out.Join(r.alarm())
}

func (r *Role) alarm() protocol.Output {
	return protocol.Output{WakeAt: protocol.Earlier(r.beatAt, r.ledger.NextDeadline())}
}

func (r *Role) expire(now time.Time) protocol.Output {
	done, records := r.ledger.Expire(now)
	out := protocol.Output{Save: records}
	for _, v := range done.Voided {
		waiting := r.tellWaiting(v.Receipt)
		parties := append([]protocol.AgentID{v.User}, v.Sellers...)
		out.Send = append(out.Send, r.tellParties(v.Receipt, string(v.Contract), parties, waiting)...)
		out.Send = append(out.Send, waiting...)
	}
	for _, e := range done.Ended {
		out.Send = append(out.Send, r.tellEnded(e)...)
	}
	return out
}

// decide asks the ledger and carries the answer to the asker, and to all who
// wait if it is a decision.
func (r *Role) decide(m protocol.Message, id protocol.ContractID, ask func() (protocol.Receipt, []protocol.Record, error)) protocol.Output {
	receipt, records, err := ask()
	switch {
	case errors.Is(err, ledger.ErrAskStore):
		return r.park(m, id)
	case err != nil:
		return protocol.Output{Send: []protocol.Message{r.refusal(m, err)}}
	}
	out := protocol.Output{Save: records}
	if receipt.Outcome == protocol.OutcomeGathering && m.Performative == protocol.Request {
		r.wait(id, m)
		return out
	}
	out.Send = append(out.Send, r.answer(m, receipt))
	if decided(receipt) {
		r.stopWaiting(id, m.Sender)
		out.Send = append(out.Send, r.tellWaiting(receipt)...)
	}
	return out
}

func decided(r protocol.Receipt) bool {
	return r.Outcome == protocol.OutcomeSettled || r.Outcome == protocol.OutcomeVoid
}

// answer is what the bank says of a contract. A decision carries its receipt,
// which is signed on the way out.
func (r *Role) answer(m protocol.Message, receipt protocol.Receipt) protocol.Message {
	p := protocol.Inform
	if m.Performative == protocol.Request {
		p = protocol.Agree
		if receipt.Outcome == protocol.OutcomeVoid {
			p = protocol.Refuse
		}
	}
	return m.Reply(r.cfg.ID, p, decision(receipt))
}

// decision is a receipt as it is told: refunds in order of unit, as its form
// wants them, whatever order they were made in.
func decision(receipt protocol.Receipt) message.Decision {
	receipt.Refunds = slices.SortedFunc(slices.Values(receipt.Refunds), func(a, b protocol.Refund) int { return cmp.Compare(a.Unit, b.Unit) })
	receipt.Ends = slices.SortedFunc(slices.Values(receipt.Ends), func(a, b protocol.UnitEnd) int { return cmp.Compare(a.Unit, b.Unit) })
	d := message.Decision{Contract: receipt.Contract, Outcome: receipt.Outcome, Reason: receipt.Reason}
	if decided(receipt) {
		d.Receipt = &message.SignedReceipt{Receipt: receipt}
	}
	return d
}

func (r *Role) refusal(m protocol.Message, err error) protocol.Message {
	code, note := protocol.CodeMalformed, err.Error()
	var refused *ledger.Refusal
	if errors.As(err, &refused) {
		code, note = refused.Code, refused.Note
	}
	return m.Reply(r.cfg.ID, protocol.Refuse, message.Refused(code, note))
}

// wait remembers who asked for a contract that is not decided. A repeated
// request replaces the earlier one.
func (r *Role) wait(id protocol.ContractID, m protocol.Message) {
	m.Body = nil
	for i, a := range r.waiting[id] {
		if a.to == m.Sender {
			r.waiting[id][i].request = m
			return
		}
	}
	if r.waits < maxWaiting {
		r.waits++
		r.waiting[id] = append(r.waiting[id], asker{m.Sender, m})
	}
}

// stopWaiting forgets an asker that is being answered.
func (r *Role) stopWaiting(id protocol.ContractID, who protocol.AgentID) {
	n := len(r.waiting[id])
	r.waiting[id] = slices.DeleteFunc(r.waiting[id], func(a asker) bool { return a.to == who })
	r.waits -= n - len(r.waiting[id])
}

// tellWaiting answers everybody who waits for a contract.
func (r *Role) tellWaiting(receipt protocol.Receipt) []protocol.Message {
	var list []protocol.Message
	for _, a := range r.waiting[receipt.Contract] {
		list = append(list, r.answer(a.request, receipt))
	}
	r.waits -= len(list)
	delete(r.waiting, receipt.Contract)
	return list
}

// park keeps a message until the store has told what memory no longer knows. An
// answer of the store may be lost; so when there is no more room, all that are
// parked make it.
func (r *Role) park(m protocol.Message, id protocol.ContractID) protocol.Output {
	if r.parks >= maxParked {
		clear(r.parked)
		r.parks = 0
	}
	r.parks++
	r.parked[id] = append(r.parked[id], m)
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.QueryRef, Sender: r.cfg.ID, Receivers: []protocol.AgentID{protocol.LocalHistory},
		Protocol: protocol.ProtocolRequest, Conversation: string(id), Body: message.OutcomeLookup{Contract: id},
	}}}
}

// recall takes the store's answer and goes on with what waited for it.
func (r *Role) recall(now time.Time, m protocol.Message, found message.FoundOutcome) protocol.Output {
	if m.Sender != protocol.LocalHistory {
		return protocol.Output{}
	}
	id := protocol.ContractID(m.Conversation)
	if err := r.ledger.Recall(id, ledger.Lookup{Found: found.Found, Receipt: found.Receipt, AsOf: found.AsOf}); err != nil {
		return protocol.Output{}
	}
	list := r.parked[id]
	r.parks -= len(list)
	delete(r.parked, id)
	var out protocol.Output
	for _, waiting := range list {
		out = out.Join(r.handle(now, waiting))
	}
	return out
}

// refund gives a unit's cost back because its seller asks.
func (r *Role) refund(now time.Time, m protocol.Message, q message.RefundRequest) protocol.Output {
	n := q.Signed.Note
	if n.Contract != q.Bundle.ID || q.Signed.Signer.ID != n.Seller {
		return protocol.Output{Send: []protocol.Message{m.Reply(r.cfg.ID, protocol.Refuse, message.Refused(protocol.CodeMismatch, "the note is for another contract"))}}
	}
	return r.decide(m, n.Contract, func() (protocol.Receipt, []protocol.Record, error) {
		return r.ledger.Refund(now, n.Contract, q.Bundle.Bundle, n.Unit, n.Amount, n.Seller)
	})
}

// beat tells the market that the bank is there.
func (r *Role) beat(now time.Time) protocol.Output {
	r.counter++
	r.beatAt = now.Add(r.cfg.Heartbeat)
	p := message.Presence{
		Agent: protocol.KindBank, TTL: max(protocol.PresenceTTL, 7*r.cfg.Heartbeat/2), Counter: r.counter,
		Modes: r.modes(), Recovering: r.ledger.Backup(),
	}
	for _, c := range r.cfg.Currencies {
		terms := protocol.Terms{Bank: r.cfg.ID, Currency: c}
		p.Terms = append(p.Terms, terms)
		if r.ledger.Policy(c).Kind == ledger.PolicyBarter {
			p.After = append(p.After, terms)
		}
	}
	return protocol.Output{
		Save:   []protocol.Record{{Table: TablePresence, Key: "counter", Value: []byte(strconv.FormatUint(r.counter, 10))}},
		Send:   []protocol.Message{r.presence(p)},
		WakeAt: r.beatAt,
	}
}

// modes are those that some currency of the bank is paid in: barter only pays
// after the fact, and a presence says which currencies are bartered.
func (r *Role) modes() []protocol.Mode {
	late := []protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered}
	for _, c := range r.cfg.Currencies {
		if r.ledger.Policy(c).Kind != ledger.PolicyBarter {
			return append([]protocol.Mode{protocol.ModeOnReservation}, late...)
		}
	}
	return late
}

func (r *Role) presence(p message.Presence) protocol.Message {
	return protocol.Message{
		Performative: protocol.Inform, Sender: r.cfg.ID, Receivers: []protocol.AgentID{protocol.Everyone},
		Protocol: protocol.ProtocolPresence, Conversation: "presence", Body: p,
	}
}

// Leave tells the market that the bank goes; it is the last Output of a role.
func (r *Role) Leave() protocol.Output {
	r.counter++
	return protocol.Output{Send: []protocol.Message{r.presence(message.Presence{Agent: protocol.KindBank, Counter: r.counter})}}
}

func (r *Role) loadCounter(_ string, value []byte) error {
	n, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		return fmt.Errorf("presence counter: %w", err)
	}
	r.counter = n + 1 // the leaving presence of the last run was not saved
	return nil
}

// Currencies are those that the bank keeps accounts in, in order.
func (r *Role) Currencies() []string {
	list := append([]string(nil), r.cfg.Currencies...)
	sort.Strings(list)
	return list
}
