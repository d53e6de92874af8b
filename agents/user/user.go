// Package user is the user agent: it asks the market for what its owner orders,
// buys the best set of offers all or nothing, and remembers what was signed.
//
// It decides which sellers to ask, which bank to pay with, when to ask its owner
// for approval, and what to say of a purchase that failed. It never reads a
// clock, a socket or a file.
//
//	order --auction--> bidding --set found--> voting --all agreed--> confirming
//	      --all countersigned--> deciding --the bank's receipt--> settled | void
//
// A restart before the bundle is signed ends a purchase (nothing is held for
// longer than its hold-until); after that it goes on with the same bundle.
package user

import (
	"sort"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Bounds of a user agent.
const (
	maxSellers   = 1 << 15 // sellers and banks that it remembers
	maxPurchases = 1 << 12 // purchases going on at once
	maxEnded     = 1 << 16 // purchases that are over whose IDs are remembered; beyond, the oldest can be used again
)

// ApprovalTime is how long a purchase waits for its owner's word; it is well
// below the validity of offers.
const ApprovalTime = 3 * time.Minute

// AskEverybody as a Budget is none.
const AskEverybody = -1

// TablePurchases has one Row per purchase, by ID.
const TablePurchases = "purchases"

// Config is what a user agent is.
type Config struct {
	Credential *identity.Credential
	Trust      *identity.Trust
	Terms      []protocol.Terms // banks to pay with, in order of preference; none: any bank that is known
	Hold       time.Duration    // how long sellers are asked to hold; zero: DefaultHold
	Settle     time.Duration    // from the votes to the bank's deadline; zero: DefaultSettle
	CallAtMost int              // sellers called one by one; zero: protocol.MaxGossipless
	// Budget is how many sellers a round asks if more than CallAtMost are known;
	// zero: auction.DefaultBudget, AskEverybody: all, by gossip.
	Budget int
	Mode   protocol.Mode // when purchases are paid unless their order says it; none: see Options
	// AskUsage leaves usage records that the contract allows to the owner's word.
	AskUsage bool
}

// Role is a user agent.
type Role struct {
	cfg       Config
	known     map[protocol.AgentID]peer
	timing    *auction.Timing
	purchases map[string]*purchase
	order     []string // keys of purchases, oldest first
	ended     map[string]bool
	endings   []string // keys of ended, oldest first
	cancels   map[cancelKey]*cancellation
	awaited   followed
	kept      keptContracts        // settled and not over
	runs      map[string]*run      // programs that are not over, or not fetched
	lost      map[string]*lostUnit // by the ID of the order in their place
}

// peer is a seller or bank that has told it is there. Its presence is the body of
// the message that told so, as it is: thousands of agents in one process share it.
type peer struct {
	presence protocol.Body // a message.Presence
	expires  int64         // Unix nanoseconds
}

func (p peer) told() message.Presence { return p.presence.(message.Presence) }

func (p peer) gone(now time.Time) bool { return p.expires <= now.UnixNano() }

// filled is the Config with its defaults.
func (cfg Config) filled() Config {
	if cfg.Hold == 0 {
		cfg.Hold = protocol.DefaultHold
	}
	if cfg.Settle == 0 {
		cfg.Settle = protocol.DefaultSettle
	}
	switch cfg.Budget {
	case 0:
		cfg.Budget = auction.DefaultBudget
	case AskEverybody:
		cfg.Budget = 0
	}
	return cfg
}

// New restores a user agent from its tables. Its first Output goes on with what
// was signed before a restart.
func New(cfg Config, t protocol.Tables, now time.Time) (*Role, protocol.Output, error) {
	cfg = cfg.filled()
	r := &Role{
		cfg: cfg, timing: auction.NewTiming(),
		known: map[protocol.AgentID]peer{}, purchases: map[string]*purchase{},
		cancels: map[cancelKey]*cancellation{}, ended: map[string]bool{}, awaited: newFollowed(), kept: newKeptContracts(), runs: map[string]*run{}, lost: map[string]*lostUnit{},
	}
	out, err := r.restore(t, now)
	return r, out, err
}

// Going reports whether a purchase is going on.
func (r *Role) Going(id string) bool { return r.purchases[id] != nil }

// Purchases is how many purchases go on.
func (r *Role) Purchases() int { return len(r.purchases) }

// ID is the agent's own.
func (r *Role) ID() protocol.AgentID { return r.cfg.Credential.ID }

// Receive takes a message from another agent or from the owner.
func (r *Role) Receive(now time.Time, m protocol.Message) protocol.Output {
	switch body := m.Body.(type) {
	case message.Buy:
		if m.Sender == protocol.LocalControl {
			return r.buy(now, body)
		}
	case message.Approval:
		if m.Sender == protocol.LocalControl {
			return r.approved(now, body)
		}
	case message.CancelPurchase:
		if m.Sender == protocol.LocalControl {
			return r.cancel(now, body)
		}
	case message.OwnerWord:
		if m.Sender == protocol.LocalControl {
			return r.ownerWord(now, body)
		}
	case message.RunControl, message.RunCollected:
		if m.Sender == protocol.LocalControl {
			return r.controlRun(now, m.Body)
		}
	case message.StageFault:
		if m.Sender == protocol.LocalFiles {
			return r.stageFault(now, body)
		}
	case message.BundleQuery:
		if m.Performative == protocol.QueryRef {
			return r.bundleCopy(m, body)
		}
	case message.Presence:
		r.meet(now, m.Sender, m.Body, body)
		return protocol.Output{}
	default:
		return r.converse(now, m)
	}
	return protocol.Output{} // only the owner gives orders
}

// converse brings a message to the conversation it belongs to.
func (r *Role) converse(now time.Time, m protocol.Message) protocol.Output {
	if out, ok := r.heardOfJob(now, m); ok {
		return out
	}
	if c := r.cancellationOf(m); c != nil {
		return r.cancelAnswered(c, m)
	}
	if run, unit := r.runOf(m); run != nil {
		return r.runHears(now, run, unit, m)
	}
	p := r.purchases[m.Conversation]
	if p == nil {
		p = r.contractOf(m)
	}
	if p == nil {
		return r.late(m)
	}
	return r.advance(now, p, p.receive(now, m))
}

// contractOf is the purchase that a decision is about: a bank that voids what
// nobody asked about any more knows the contract, and not its conversation.
func (r *Role) contractOf(m protocol.Message) *purchase {
	d, ok := m.Body.(message.Decision)
	if !ok || d.Contract == "" {
		return nil
	}
	for _, id := range r.order {
		if p := r.purchases[id]; p.coord != nil && p.coord.Bundle().ID == d.Contract {
			return p
		}
	}
	return nil
}

// late answers what belongs to a conversation that is over, or was never: a vote
// is cancelled at once, so that its slot is free before its hold ends. All that a
// settled purchase bought is countersigned, which no cancel touches.
func (r *Role) late(m protocol.Message) protocol.Output {
	v, ok := m.Body.(message.Vote)
	if !ok {
		return protocol.Output{}
	}
	return protocol.Output{Send: []protocol.Message{m.Reply(r.ID(), protocol.Cancel, reserve.CancelVote(v))}}
}

// Wake does what is due in every purchase.
func (r *Role) Wake(now time.Time) protocol.Output {
	out := r.saveBegun()
	for _, id := range append([]string(nil), r.order...) {
		if p := r.purchases[id]; p != nil {
			out = out.Join(r.advance(now, p, p.wake(now)))
		}
	}
	return out.Join(r.wakeCancels(now)).Join(r.wakeAwaited(now)).Join(r.wakeRuns(now)).Join(r.wakeLost(now))
}

// meet remembers who is there. A presence with an older counter is stale; one
// that has left is remembered by its counter, so that no replay brings it back.
func (r *Role) meet(now time.Time, from protocol.AgentID, body protocol.Body, p message.Presence) {
	old, met := r.known[from]
	switch {
	case met && p.Counter <= old.told().Counter:
		return
	case !met && len(r.known) >= maxSellers:
		r.forgetExpired(now)
		if len(r.known) >= maxSellers {
			return
		}
	}
	r.known[from] = peer{presence: body, expires: now.Add(min(max(p.TTL, 0), protocol.MaxTTL)).UnixNano()}
}

func (r *Role) forgetExpired(now time.Time) {
	for id, k := range r.known {
		if k.gone(now) {
			delete(r.known, id)
		}
	}
}

// Known is an agent that the user agent could deal with.
type Known struct {
	ID       protocol.AgentID
	Presence message.Presence
	Expires  time.Time
}

// Known lists the agents of a kind that are there now, in order of ID.
func (r *Role) Known(now time.Time, kind protocol.Kind) []Known {
	list := make([]Known, 0, len(r.known))
	for id, k := range r.known {
		if p := k.told(); p.Agent == kind && !k.gone(now) {
			list = append(list, Known{id, p, time.Unix(0, k.expires).UTC()})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
	return list
}
