package auction

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Calendar is what a seller knows of its machine's future.
type Calendar interface {
	// Free is the least number of cores free at any instant from start to end.
	Free(start, end time.Time) int
	// Load is how many cores are allocated at t, and how many there are.
	Load(t time.Time) (busy, capacity int)
	// Earliest is the first start in [from, latest] from which cores are free
	// for the whole wall time.
	Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool)
}

// Pricing is the seller's price rule (specs §1.2).
type Pricing interface {
	// Ask is the price when the request stands at a price and busy of capacity
	// cores are allocated, and whether the seller bids at all.
	Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool)
	// Limits are the start price and the least.
	Limits() (start, least protocol.Credits)
}

// SellerConfig is what a seller brings to every auction.
type SellerConfig struct {
	Self       protocol.AgentID
	Properties protocol.Properties
	Terms      []protocol.Terms
	Modes      []protocol.Mode
	Pricing    Pricing
	Validity   time.Duration // how long a bid stands
	Lead       time.Duration // from a bid to the start of a slot that may move
	Horizon    time.Duration // how far ahead it sells
	Longest    time.Duration // that a slot may last; 0: no bound
	Read       Reader        // reads a buyer's document; nil: Read
	Serves     Serves        // nil: no program runs here
}

// Serves says whether a buyer's program would run at a seller, by its code CodeProgram
// if not; nil: it would.
type Serves func(buyer protocol.AgentID, launch message.Intent) *protocol.Reason

// Bounds of a seller's side.
const (
	// DefaultLead leaves a free slot room for three rounds of 15 s, a vote and
	// the bank before it starts: a slot that starts sooner could not be settled.
	DefaultLead = 2 * time.Minute
	// DefaultHorizon is how far ahead a machine is sold.
	DefaultHorizon = 366 * 24 * time.Hour
)

// Seller is one seller's side of one auction. It commits nothing: an offer may
// be refused when it is accepted (002 §5.1.1 step 6), and what it offers here
// does not lower what it offers elsewhere.
type Seller struct {
	cfg    *SellerConfig
	call   message.CallForProposals // of round 1: terms, modes, objective
	hash   string                   // of the document
	size   int                      // bytes of the document
	bars   *protocol.Reason         // why what is to be launched does not run here; nil: it would, or nothing is
	again  bool                     // the buyer has heard no answer yet: what stands is offered again
	units  []sellerUnit
	round  int
	answer Answer // of that round
}

// sellerUnit is one request of the document and how it stands with this seller.
type sellerUnit struct {
	request rfql.Request
	ceiling protocol.Credits
	static  []protocol.Reason // why never
	offer   *protocol.Offer   // the last
	before  []protocol.Offer  // those that it replaced, oldest first
	offers  int               // made so far, for their IDs
}

// Answer is what a seller says in a round, and the lines that explain it.
type Answer struct {
	Performative protocol.Performative
	Body         protocol.Body
	Lines        []message.QuoteLine
}

// Document is what a seller reads in a buyer's document. It is not changed, so
// that several sellers may share one.
type Document struct {
	Hash     string // as a bundle names it: hex SHA-256 of the bytes
	Requests []rfql.Request
}

// Reader reads a buyer's document. The same bytes give the same Document.
type Reader func(document []byte) (Document, error)

// Read is the Reader that remembers nothing.
func Read(document []byte) (Document, error) {
	d, err := rfql.Parse(document, time.Time{})
	if err != nil {
		return Document{}, err
	}
	return Document{Hash: documentHash(document), Requests: d.Requests()}, nil
}

// NewSeller takes a buyer's first call for proposals of an auction, which carries the
// document. It fails if that cannot be sold to anybody.
//
// The document's times are not compared with the clock here: that a window is
// over is a refusal with a reason, not a fault of the document.
func NewSeller(cfg *SellerConfig, buyer protocol.AgentID, call message.CallForProposals) (*Seller, error) {
	read := cfg.Read
	if read == nil {
		read = Read
	}
	document, err := read(call.Document)
	if err != nil {
		return nil, err
	}
	s := &Seller{cfg: cfg, hash: document.Hash, size: len(call.Document), units: make([]sellerUnit, 0, len(document.Requests))}
	s.call = call
	s.call.Document = nil
	s.bars = cfg.bars(buyer, call.Launch)
	for _, r := range document.Requests {
		s.units = append(s.units, sellerUnit{
			request: r, ceiling: r.Price, static: rfql.Match(r, cfg.Properties),
		})
	}
	return s, nil
}

// bars is why a buyer's program would not run here.
func (c *SellerConfig) bars(buyer protocol.AgentID, launch *message.Intent) *protocol.Reason {
	switch {
	case launch == nil:
		return nil
	case c.Serves == nil:
		return &protocol.Reason{Code: protocol.CodeProgram, Note: "this site runs no programs"}
	}
	return c.Serves(buyer, *launch)
}

// DocumentHash is the hex SHA-256 of the document as it was sent.
func (s *Seller) DocumentHash() string { return s.hash }

// Call answers the call of a round. The call of the last round, repeated, gets
// the same answer again; one of an earlier round gets none.
func (s *Seller) Call(now time.Time, call message.CallForProposals, cal Calendar) (Answer, bool) {
	switch {
	case call.Round == s.round:
		return s.answer, true
	case call.Round < s.round:
		return Answer{}, false // replayed, or overtaken: that round is over
	}
	s.lower(call.Ceilings)
	s.again = s.round > 0 && call.Budget == 0 && len(call.Document) > 0 // in a gossiped call it is for others
	lines := make([]message.QuoteLine, 0, len(s.units))
	for i := range s.units {
		lines = s.quote(lines, now, i, call.Best, cal)
	}
	if call.Best {
		s.apart(now, lines, cal)
	}
	s.answer = s.compose(call.Round, lines, cal)
	s.round = call.Round
	return s.answer, true
}

// lower takes the prices to beat. What a call does not name stands as it was.
func (s *Seller) lower(ceilings []message.Ceiling) {
	for _, c := range ceilings {
		if c.Unit >= 0 && c.Unit < len(s.units) {
			s.units[c.Unit].ceiling = c.Price
		}
	}
}

// compose makes the answer of a round from its lines: a proposal of what is new,
// or a refusal if nothing is.
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

// Offer finds a live offer of this auction by its ID. One that was replaced
// still holds, as long as it is remembered: the buyer may have chosen before it
// heard of the lower one.
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

// maxReplaced bounds the replaced offers that are remembered per unit.
const maxReplaced = 4

// replace makes o the unit's offer.
func (u *sellerUnit) replace(o *protocol.Offer) {
	if u.offer != nil {
		u.before = append(u.before, *u.offer)
		u.before = u.before[max(0, len(u.before)-maxReplaced):]
	}
	u.offer = o
}

// made are the unit's offers that are remembered.
func (u *sellerUnit) made() []protocol.Offer {
	if u.offer == nil {
		return u.before
	}
	return append(u.before[:len(u.before):len(u.before)], *u.offer)
}
