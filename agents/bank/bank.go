// Package bank is the bank agent: it answers questions about accounts, gathers the
// countersigned copies of a bundle, and decides it once.
//
// The ledger decides; this role hands it what arrives, and carries its answers to
// every agent that waits for them. It never reads a clock, a socket or a file.
// Decisions leave only after the ledger's record is durable.
package bank

import (
	"cmp"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Config is what a bank agent is.
type Config struct {
	ID         protocol.AgentID
	Currencies []string
	Grace      time.Duration // pause of expiry after a restart; zero: ledger.DefaultGrace
	Reports    time.Duration // how long after its slot a unit waits for its seller's report; zero: protocol.ReportWithin
	Heartbeat  time.Duration // between presences; zero: protocol.HeartbeatPeriod

	// Sign signs the operator's acts, the same octets always in the same way; nil:
	// they are not signed. See ledger.Config.
	Sign func(octets []byte) []byte
}

// Role is a bank agent.
type Role struct {
	Orders Orders

	cfg     Config
	ledger  *ledger.Ledger
	waiting askers
	history history
	beacon  beacon
}

// New restores a bank from its tables.
func New(cfg Config, t protocol.Tables, now time.Time) (*Role, protocol.Output, error) {
	l, err := ledger.Load(ledger.Config{Bank: cfg.ID, Currencies: cfg.Currencies, Grace: cfg.Grace, ReportWithin: cfg.Reports, Sign: cfg.Sign}, now, t)
	if err != nil {
		return nil, protocol.Output{}, err
	}
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, protocol.HeartbeatPeriod)
	r := &Role{
		Orders: Orders{l}, cfg: cfg, ledger: l, waiting: askers{byContract: map[protocol.ContractID][]protocol.Message{}},
		history: history{self: cfg.ID, ledger: l, parked: map[protocol.ContractID][]protocol.Message{}},
		beacon:  beacon{cfg: cfg, ledger: l},
	}
	if err := r.beacon.load(t, now); err != nil {
		return nil, protocol.Output{}, err
	}
	return r, r.beacon.beat(now).Join(r.alarm()), nil
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
		var out protocol.Output
		for _, waiting := range r.history.recall(m, body) {
			out = out.Join(r.handle(now, waiting))
		}
		return out
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
		return r.quoted(m)(r.ledger.Exchange.Quote(now, m.Sender, body.ID, body.From, body.To, body.Gives))
	case message.ExchangeRequest:
		return r.quoted(m)(r.ledger.Exchange.CarryOut(now, m.Sender, body.ID, body.Least))
	case message.BalanceQuery:
		return r.balance(now, m)
	case message.StatementQuery:
		return r.history.statement(m, body)
	case message.ProofQuery: // the store decides who may see the entries of a contract
		return r.history.ask(m, message.ProofLookup{Query: body, By: m.Sender})
	case message.FoundProof:
		return r.history.passProof(m, body)
	case message.SoldQuery:
		return r.history.sold(m, body)
	case message.Statement, message.SoldList:
		return r.history.passOn(m, protocol.Inform, body)
	}
	return protocol.Output{} // presences of others, and answers that nobody awaits
}

// Wake ends what is over, and announces the bank when its presence is due.
func (r *Role) Wake(now time.Time) protocol.Output {
	out := r.expire(now)
	if !now.Before(r.beacon.next) {
		out = out.Join(r.beacon.beat(now))
	}
	return out.Join(r.alarm())
}

func (r *Role) alarm() protocol.Output {
	return protocol.Output{WakeAt: protocol.Earlier(r.beacon.next, r.ledger.NextDeadline())}
}

// Leave announces that the bank goes; it is the last Output of a role.
func (r *Role) Leave() protocol.Output { return r.beacon.leave() }

// Sizes are what the agent keeps in memory, and the bounds of it.
func (r *Role) Sizes() []protocol.Size {
	return append(r.ledger.Sizes(),
		protocol.Size{Of: "askers that wait", N: r.waiting.n, Most: maxWaiting},
		protocol.Size{Of: "messages that wait for the store", N: r.history.n, Most: maxParked},
	)
}
