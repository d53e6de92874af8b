package auction

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Calendar predicts how busy the seller's machine will be.
type Calendar interface {
	// Free is the least number of cores free at any instant from start to end.
	Free(start, end time.Time) int
	// Load returns the cores allocated at t, and all cores.
	Load(t time.Time) (busy, capacity int)
	// Earliest returns the first start in [from, latest] with cores free for the whole wall time.
	Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool)
}

// NodeCalendar is a Calendar of a machine that sells whole nodes.
type NodeCalendar interface {
	Calendar
	// Whole is the calendar, still in cores, of the nodes with so many; false: it sells none.
	Whole(nodeCores int) (Calendar, bool)
}

// Pricing is the seller's price rule (specs §1.2).
type Pricing interface {
	// Ask returns the seller's price while the request stands at a price and busy of
	// capacity cores are allocated, and whether the seller bids at all.
	Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool)
	// Outbids reports whether the seller bids on when another's equal offer leads.
	Outbids() bool
	// Limits returns the start price and the lowest price.
	Limits() (start, least protocol.Credits)
}

// SellerConfig holds a seller's properties, terms and prices.
type SellerConfig struct {
	Self       protocol.AgentID
	Properties protocol.Properties
	Terms      []protocol.Terms
	Modes      []protocol.Mode
	Pricing    Pricing
	Idle       int           // percent of a metered unit's ceiling that is due however idle its cores are, 0..50
	Validity   time.Duration // of a bid
	Lead       time.Duration // least time from a bid to the start of a movable slot
	Horizon    time.Duration // how far ahead it sells
	Longest    time.Duration // longest slot; 0: no bound
	Read       Reader        // reads a buyer's document; nil: one that remembers
	Serves     Serves        // nil: the site runs no programs
}

// Serves returns nil if a buyer's program would run at the seller, or else a reason
// with CodeProgram.
type Serves func(buyer protocol.AgentID, launch message.Intent) *protocol.Reason

// Bounds of a seller's side.
const (
	// DefaultLead allows three rounds of 15 s, a vote and the bank before a slot starts.
	// An earlier slot could not be settled in time.
	DefaultLead = 2 * time.Minute
	// DefaultHorizon is how far ahead a seller offers its machine.
	DefaultHorizon = 366 * 24 * time.Hour
)

// Seller is one seller's side of one auction. Offers are not binding: the seller may refuse when
// one is accepted (002 §5.1.1 step 6), and offers the same cores in other auctions.
type Seller struct {
	cfg       *SellerConfig
	call      message.CallForProposals // of round 1: terms, modes, objective
	hash      string                   // of the document
	size      int                      // bytes of the document
	objection *protocol.Reason         // why the buyer's program does not run here; nil: no objection
	again     bool                     // the buyer has received no answer yet, so repeat the offers that stand
	units     []sellerUnit
	together  bool      // all units begin at the same second
	start     time.Time // which the running call asks for, or later; zero: any
	round     int
	answer    Answer // to that round
}

// sellerUnit is one request of the document with this seller's offers.
type sellerUnit struct {
	request rfql.Request
	ceiling protocol.Credits
	tied    bool              // another seller's offer at the ceiling leads
	static  []protocol.Reason // terms that the machine never meets
	offer   *protocol.Offer   // the last
	joint   *protocol.Offer   // at a start that all units can have together; nil: offer is
	before  []protocol.Offer  // replaced ones, oldest first
	offers  int               // made so far, for their IDs
}

// Answer is a seller's message in a round, with the lines that explain it.
type Answer struct {
	Performative protocol.Performative
	Body         protocol.Body
	Lines        []message.QuoteLine
}

// newSeller takes a buyer's first call for proposals, which carries the document. It fails if the
// document is invalid. A window in the past is valid: the seller refuses it with a reason later.
func newSeller(cfg *SellerConfig, buyer protocol.AgentID, call message.CallForProposals) (*Seller, error) {
	document, err := cfg.Read(call.Document)
	if err != nil {
		return nil, err
	}
	s := &Seller{cfg: cfg, hash: document.Hash, size: len(call.Document), units: make([]sellerUnit, 0, len(document.Requests))}
	s.call, s.together = call, document.SameStart
	s.call.Document = nil
	s.objection = cfg.objection(buyer, call.Launch)
	for _, r := range document.Requests {
		s.units = append(s.units, sellerUnit{
			request: r, ceiling: r.Price, static: rfql.Match(r, cfg.Properties),
		})
	}
	return s, nil
}

// objection returns why a buyer's program would not run here, or nil.
func (c *SellerConfig) objection(buyer protocol.AgentID, launch *message.Intent) *protocol.Reason {
	switch {
	case launch == nil:
		return nil
	case c.Serves == nil:
		return &protocol.Reason{Code: protocol.CodeProgram, Note: "this site runs no programs"}
	}
	return c.Serves(buyer, *launch)
}

// Call answers the call of a round. It repeats its answer to the last round, and does
// not answer earlier ones.
func (s *Seller) Call(now time.Time, call message.CallForProposals, cal Calendar) (Answer, bool) {
	switch {
	case call.Round == s.round:
		return s.answer, true
	case call.Round < s.round:
		return Answer{}, false // replayed or delayed: that round is over
	}
	s.lower(call.Ceilings)
	s.start = call.Start
	s.again = s.round > 0 && call.Budget == 0 && len(call.Document) > 0 // a gossiped call repeats the document for others
	lines := make([]message.QuoteLine, 0, len(s.units))
	for i := range s.units {
		lines = s.quote(lines, now, i, call.Best, cal)
	}
	if s.together {
		lines = s.jointly(lines, now, call.Best, cal)
	} else if call.Best {
		s.apart(now, lines, cal)
	}
	s.answer = s.compose(call.Round, lines, cal)
	s.round = call.Round
	return s.answer, true
}

// lower takes the prices to beat. Units that the call does not name keep theirs.
func (s *Seller) lower(ceilings []message.Ceiling) {
	for _, c := range ceilings {
		if c.Unit >= 0 && c.Unit < len(s.units) {
			s.units[c.Unit].ceiling, s.units[c.Unit].tied = c.Price, c.Tied && s.cfg.Pricing.Outbids()
		}
	}
}

// compose makes the answer of a round: a proposal of the new offers, or a refusal if
// no offer is new.
func (s *Seller) compose(round int, lines []message.QuoteLine, cal Calendar) Answer {
	var offers []protocol.Offer
	var reasons []protocol.Reason
	for i := range lines {
		lines[i].Round = round
		if lines[i].Offer != nil {
			offers = append(offers, *lines[i].Offer)
		} else if len(reasons) < protocol.MaxReasons {
			reasons = append(reasons, *lines[i].Reason)
		}
	}
	a := Answer{Lines: lines}
	if len(offers) == 0 {
		a.Performative = protocol.Refuse
		a.Body = message.Refusal{Round: round, Reasons: reasons}
		return a
	}
	a.Performative = protocol.Propose
	a.Body = message.Proposal{Round: round, Offers: offers, Capacity: s.joint(cal), Refusals: reasons}
	return a
}

// Offer finds a live offer of this auction by its ID. The last replaced ones stay
// valid: the buyer may have chosen before it received the lower offer.
func (s *Seller) Offer(now time.Time, id string) (protocol.Offer, bool) {
	for i := range s.units {
		for _, o := range s.units[i].made() {
			if o.ID == id && o.ValidUntil.After(now) {
				return o, true
			}
		}
	}
	return protocol.Offer{}, false
}

// maxReplaced bounds the replaced offers that a seller remembers per unit.
const maxReplaced = 4

// replace makes o the unit's offer.
func (u *sellerUnit) replace(o *protocol.Offer) {
	if u.offer != nil {
		u.before = append(u.before, *u.offer)
		u.before = u.before[max(0, len(u.before)-maxReplaced):]
	}
	u.offer = o
}

// made returns the unit's remembered offers.
func (u *sellerUnit) made() []protocol.Offer {
	list := u.before[:len(u.before):len(u.before)]
	for _, o := range []*protocol.Offer{u.offer, u.joint} {
		if o != nil {
			list = append(list, *o)
		}
	}
	return list
}
