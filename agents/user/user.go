// Package user is the user agent. It asks the market for the computing time that its owner orders,
// buys the best set of offers all or nothing, and records what was signed.
//
// It decides which sellers to ask, which bank to pay with, when to ask its owner for approval, and
// how to explain a purchase that failed. It never reads a clock, a socket or a file.
//
//	order --auction--> bidding --set found--> voting --all agreed--> confirming
//	      --all countersigned--> deciding --the bank's receipt--> settled | void
//
// A restart before the bundle is signed ends a purchase (nothing is held for longer than its
// hold-until). After that, the purchase resumes with the same bundle.
//
// A Role passes each message and each alarm to the part that owns the state. Calls
// between parts go one way, cancels → usage → rebuys → runs and purchases. Purchases
// and runs report back through the functions that New gives them.
package user

import (
	"cmp"
	"time"

	"ramp/agents/index"
	"ramp/agents/receipts"
	"ramp/agents/user/sweeper"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// ApprovalTime is how long a purchase waits for its owner's approval. It is well
// below the validity of offers.
const ApprovalTime = 3 * time.Minute

// AskEverybody as Config.Budget removes the limit on sellers per round.
const AskEverybody = -1

// Config configures a user agent.
type Config struct {
	Credential *identity.Credential
	Trust      *identity.Trust
	Terms      []protocol.Terms // banks to pay with, the most widely accepted first, then in this order; empty: any known bank
	Hold       time.Duration    // how long sellers are asked to hold; zero: DefaultHold
	Settle     time.Duration    // from the votes to the bank's deadline; zero: DefaultSettle
	CallAtMost int              // sellers called one by one; zero: protocol.MaxGossipless
	// Budget is how many sellers a round asks if more than CallAtMost are known;
	// zero: auction.DefaultBudget, AskEverybody: all, by gossip.
	Budget int
	Mode   protocol.Mode // when purchases are paid unless their order says; empty: see Options
	// AskUsage leaves usage records that the contract allows to the owner's verdict.
	AskUsage bool
}

func (cfg Config) withDefaults() Config {
	cfg.Hold = cmp.Or(cfg.Hold, protocol.DefaultHold)
	cfg.Settle = cmp.Or(cfg.Settle, protocol.DefaultSettle)
	switch cfg.Budget {
	case 0:
		cfg.Budget = auction.DefaultBudget
	case AskEverybody:
		cfg.Budget = 0
	}
	return cfg
}

func (cfg *Config) self() protocol.AgentID { return cfg.Credential.ID }

// sign signs a bundle with the agent's own key.
func (cfg *Config) sign(b protocol.Bundle, now time.Time) (contract.Verified, error) {
	return contract.SignVerified(cfg.Credential, b, cfg.Trust, now)
}

// Role is a user agent.
type Role struct {
	cfg       *Config // shared with the parts, so that Retune reaches them
	directory directory
	purchases purchases
	runs      runs
	jobs      jobs
	rebuys    rebuys
	usage     usage
	cancels   cancels
	contracts settledContracts
	receipts  receipts.Keeper
	Exchanges Exchanges
	sweeps    *sweeper.Sweeps
}

// New restores a user agent from its tables. Its first Output resumes what was
// signed before a restart.
func New(cfg Config, t protocol.Tables, now time.Time) (*Role, protocol.Output, error) {
	cfg = cfg.withDefaults()
	r := &Role{cfg: &cfg, directory: directory{known: map[protocol.AgentID]peer{}}, contracts: settledContracts{ends: map[protocol.ContractID]time.Time{}}}
	r.purchases = purchases{
		cfg: &cfg, directory: &r.directory, guide: index.NewGuide(), over: r.purchaseOver,
		timing: auction.NewTiming(), failures: &failures{by: map[protocol.AgentID]failing{}}, by: map[string]*purchase{}, ended: map[string]bool{},
	}
	r.rebuys = rebuys{directory: &r.directory, purchases: &r.purchases, runs: &r.runs, by: map[string]*rebuy{}}
	r.runs = runs{cfg: &cfg, by: map[string]*run{}, stopFor: r.stopFor}
	r.jobs = jobs{cfg: &cfg, runs: &r.runs, by: map[string]*job{}}
	r.usage = usage{cfg: &cfg, rebuys: &r.rebuys, followed: newFollowed(), changed: r.sweepBought}
	r.sweeps = sweeper.New(cfg.self(), sweepAgent{r})
	r.runs.ran = r.sweeps.Ran
	r.cancels = cancels{cfg: &cfg, usage: &r.usage, by: map[cancelKey]*cancellation{}}
	r.receipts = receipts.New(cfg.self(), cfg.Trust, false)
	r.Exchanges = Exchanges{cfg: &cfg}
	out, err := r.restore(t, now)
	return r, out.Join(r.receipts.Begin(now)), err
}

// Retune takes the banks, times and limits of c; the agent keeps its identity.
// Purchases under way keep the settings they began with.
func (r *Role) Retune(c Config) {
	c.Credential, c.Trust = r.cfg.Credential, r.cfg.Trust
	*r.cfg = c.withDefaults()
}

// Going reports whether a purchase is under way.
func (r *Role) Going(id string) bool { return r.purchases.by[id] != nil }

// Purchases is how many purchases are under way.
func (r *Role) Purchases() int { return len(r.purchases.by) }

// ID is the agent's own.
func (r *Role) ID() protocol.AgentID { return r.cfg.self() }

// Known lists the agents of a kind that are present now, in order of ID.
func (r *Role) Known(now time.Time, kind protocol.Kind) []Known {
	list := r.directory.list(now, kind)
	for i := range list {
		list[i].Failures = r.purchases.failures.of(now, list[i].ID)
	}
	return list
}

// Finds reports whether the agent knows an agent of a kind, or an index that has sites.
func (r *Role) Finds(now time.Time, kind protocol.Kind) bool {
	return kind == protocol.KindResource && r.purchases.guide.Market(now) > 0 || len(r.directory.list(now, kind)) > 0
}

// Receipts keeps the proofs of the agent's receipts.
func (r *Role) Receipts() *receipts.Keeper { return &r.receipts }

// Receive takes a message from another agent or from the owner.
func (r *Role) Receive(now time.Time, m protocol.Message) protocol.Output {
	out := r.receipts.Receive(now, m, r.receive)
	return out.Join(r.sweeps.Act(now))
}

func (r *Role) receive(now time.Time, m protocol.Message) protocol.Output {
	switch m.Sender {
	case protocol.LocalControl: // only the owner gives orders
		if out, ok := r.receiveOrder(now, m); ok {
			return out
		}
	case protocol.LocalFiles:
		if body, ok := m.Body.(message.StageFault); ok {
			return r.runs.stageFault(now, body)
		}
		if body, ok := m.Body.(message.StagedOut); ok {
			return r.sweeps.Staged(now, body)
		}
	}
	switch body := m.Body.(type) {
	case message.BundleQuery:
		if m.Performative != protocol.QueryRef {
			return protocol.Output{}
		}
		return protocol.Output{Send: []protocol.Message{r.contracts.answer(r.cfg, m, body)}}
	case message.Presence:
		r.directory.meet(now, m.Sender, m.Body, body)
		r.purchases.guide.Meet(now, m.Sender, body)
		return protocol.Output{}
	}
	return r.converse(now, m)
}

// receiveOrder takes an order of the owner; false: the message is no order.
func (r *Role) receiveOrder(now time.Time, m protocol.Message) (protocol.Output, bool) {
	switch body := m.Body.(type) {
	case message.Buy:
		return r.purchases.buy(now, body), true
	case message.Approval:
		return r.purchases.approval(now, body), true
	case message.CancelPurchase:
		return r.cancel(now, body), true
	case message.OwnerWord:
		return r.usage.ownerVerdict(now, body), true
	case message.RunCollected:
		return r.runs.collected(now, body), true
	case message.JobSubmit:
		return r.jobs.submit(now, body), true
	case message.JobAsk:
		return r.jobs.ask(now, body.Row), true
	case message.RunControl:
		out := r.runs.control(now, body)
		if j := r.jobs.by[body.ID]; j != nil && body.Verb == message.VerbKill && !j.Withdrawn {
			out = out.Join(r.jobs.withdraw(now, j))
		}
		return out, true
	}
	return protocol.Output{}, false
}

// converse brings a message to the conversation it belongs to.
func (r *Role) converse(now time.Time, m protocol.Message) protocol.Output {
	r.purchases.failures.heard(m)
	if c := r.cancels.of(m); c != nil {
		return r.cancels.answered(c, m)
	}
	if out, ok := r.usage.receive(now, m); ok {
		return out
	}
	if out, ok := r.Exchanges.receive(now, m); ok {
		return out
	}
	if out, ok := r.jobs.receive(now, m); ok {
		return out
	}
	if run, unit := r.runs.of(m); run != nil {
		return r.runs.receive(now, run, unit, m)
	}
	if p := r.purchases.of(m); p != nil {
		return r.purchases.advance(now, p, p.receive(now, m))
	}
	return r.late(m)
}

// late answers a message of a conversation that is over or never existed. It
// cancels a vote at once, so that its slot is free before its hold ends. The slots
// of a settled purchase are countersigned, and this cancel does not touch them.
func (r *Role) late(m protocol.Message) protocol.Output {
	v, ok := m.Body.(message.Vote)
	if !ok {
		return protocol.Output{}
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.ID(), protocol.Cancel, reserve.CancelVote(v))}}
}

// Wake does what is due everywhere.
func (r *Role) Wake(now time.Time) protocol.Output {
	out := r.purchases.wake(now).Join(r.cancels.wake(now)).Join(r.usage.wake(now)).Join(r.runs.wake(now)).Join(r.jobs.wake(now)).Join(r.rebuys.wake(now)).Join(r.Exchanges.wake(now))
	return r.receipts.Wake(now, out.Join(r.sweeps.Act(now)))
}

// purchaseOver passes a purchase that has just ended to the parts that continue with it.
func (r *Role) purchaseOver(now time.Time, p *purchase) protocol.Output {
	if protocol.IsQuote(p.row.ID) {
		return r.sweepTraded(now, p)
	}
	out := r.rebuys.purchaseOver(now, p).Join(r.sweepOver(now, p))
	if p.row.State != StateSettled {
		return out
	}
	r.contracts.add(now, &p.row.Purchase, p.coord.Bundle().DER, now)
	return out.Join(r.usage.follow(now, &p.row, false)).Join(r.runs.begin(now, &p.row))
}

// cancel stops a purchase that is under way, or asks the sellers of a settled one
// to take its units back.
func (r *Role) cancel(now time.Time, c message.CancelPurchase) protocol.Output {
	if p := r.purchases.by[c.ID]; p != nil {
		return r.purchases.stop(now, p)
	}
	stored, err := ReadRow(c.Row)
	if err != nil || stored.Purchase.ID != c.ID || !stored.Purchase.Settled {
		return protocol.Output{} // the control socket has checked this before
	}
	row := cmp.Or(r.usage.row(c.ID), r.cancels.row(c.ID), r.rebuys.row(c.ID), &stored) // live rows are newer
	return r.rebuys.stop(now, c.ID, c.Unit).Join(r.cancels.start(now, row, c.Unit))
}

// Sizes lists what the agent holds in memory, with the bound of each.
func (r *Role) Sizes() []protocol.Size {
	return append(append(append(r.purchases.sizes(), r.receipts.Sizes()...), r.sweeps.Sizes()...),
		protocol.Size{Of: "agents known", N: len(r.directory.known), Most: maxSellers},
		protocol.Size{Of: "purchases that are followed", N: len(r.usage.followed.by), Most: maxFollowed},
		protocol.Size{Of: "contracts that are not over", N: len(r.contracts.list), Most: maxContracts},
		protocol.Size{Of: "cancellations", N: len(r.cancels.by), Most: maxCancels},
		protocol.Size{Of: "exchanges", N: len(r.Exchanges.list), Most: maxExchanges},
		protocol.Size{Of: "programs not over or not fetched", N: len(r.runs.by), Most: maxRuns},
		protocol.Size{Of: "units being bought again", N: len(r.rebuys.by), Most: maxRebuys},
	)
}
