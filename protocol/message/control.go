package message

import (
	"encoding/json"
	"time"

	"ramp/protocol"
)

// Buy is the owner's order to a user agent (local). ID becomes the
// conversation-id.
type Buy struct {
	ID       string
	Name     string // of the request, for people
	Document []byte // RFQL, already validated
	Options  Options
	Program  *Program `json:",omitempty"` // to run in what was bought; nil: nothing
	// Replaces is the unit in whose place this is bought, by the agent itself.
	Replaces *Replaces `json:",omitempty"`
}

// Replaces says what an order is in the place of: a unit whose seller has lost its
// slot and given its price back. Program says that a run of the first purchase
// waits for it.
type Replaces struct {
	First   string // the purchase that its owner ordered
	Unit    int    // of First
	Units   int    // how many First has
	Number  int    // of this order among those for that unit, 1..user.MaxAgain
	Of      string // the purchase whose unit was lost: First, or one in its place
	Lost    int    // the unit of Of
	Program bool
	Launch  *Intent `json:",omitempty"` // of that program
}

// Launch is what the order means to run in every unit; nil: nothing.
func (b Buy) Launch() *Intent {
	switch {
	case b.Program != nil:
		i := Intent{App: b.Program.App}
		for _, f := range b.Program.Inputs {
			i.Input += f.File.Size
		}
		return &i
	case b.Replaces != nil:
		return b.Replaces.Launch
	}
	return nil
}

// Options are how to buy. Zero values mean the defaults of package protocol.
type Options struct {
	Rounds       int                `json:"rounds"`
	RoundLimit   time.Duration      `json:"round_limit"`
	NoEarlyClose bool               `json:"no_early_close,omitempty"`
	Objective    protocol.Objective `json:"objective"`
	MaxCost      protocol.Credits   `json:"max_cost,omitempty"` // of the whole purchase; 0: none
	MaxWait      time.Duration      `json:"max_wait,omitempty"` // latest start after now; 0: none
	QuoteOnly    bool               `json:"quote_only,omitempty"`
	Approve      bool               `json:"approve,omitempty"`    // ask before every purchase
	Terms        []protocol.Terms   `json:"terms,omitempty"`      // banks to pay with; none: all known
	Mode         protocol.Mode      `json:"mode,omitempty"`       // when to pay; none: as bank and sellers offer
	NoReplace    bool               `json:"no_replace,omitempty"` // a unit that its seller loses is not bought again
}

// Approval answers a purchase that awaits approval.
type Approval struct {
	ID  string
	Yes bool
}

// CancelPurchase asks to cancel a purchase, or one unit of it (Unit >= 0). Row is
// the journal's record of a purchase that is over.
type CancelPurchase struct {
	ID   string
	Unit int
	Row  []byte
}

// OwnerWord is what an owner says of the usage records of a purchase that wait for
// it (local): of one unit, or of all if Unit is below zero.
type OwnerWord struct {
	ID    string
	Unit  int
	Agree bool
	Why   string // of a dispute
}

// Progress is what a user agent tells its owner while a purchase goes on.
type Progress struct {
	Purchase Purchase
	Event    string // found, round, voting, approval, confirming, settled, failed …
	Done     bool
}

// Purchase is the owner's view of one conversation; the JSON names are fixed.
type Purchase struct {
	ID          string              `json:"id"`
	RFQ         string              `json:"rfq"`
	State       string              `json:"state"`
	Created     time.Time           `json:"created"`
	Found       int                 `json:"found"`             // sellers asked
	Deadline    time.Time           `json:"deadline,omitzero"` // latest end of a unit
	Until       time.Time           `json:"until,omitzero"`    // when the phase that it is in ends at the latest; not stored
	Waits       string              `json:"waits,omitempty"`   // what keeps its bank from deciding; not stored
	Units       []PurchasedUnit     `json:"units"`
	Rounds      []Round             `json:"rounds"`
	Total       protocol.Credits    `json:"total"`
	Currency    string              `json:"currency"`
	Bank        protocol.AgentID    `json:"bank,omitempty"`
	Contract    protocol.ContractID `json:"contract,omitempty"`
	Settled     bool                `json:"settled"`
	Reasons     map[string]int      `json:"reasons,omitempty"`  // why sellers refused, summed
	Programs    []string            `json:"programs,omitempty"` // what sellers say of the program that they do not run
	Advice      []string            `json:"advice,omitempty"`   // nearest relaxations, in words
	Relaxations []Relaxation        `json:"relaxations,omitempty"`
	Counters    []Counter           `json:"counters,omitempty"` // of a metered request: contracts that sellers would accept now
	Why         string              `json:"why,omitempty"`      // why nothing was bought
	Void        protocol.Code       `json:"void,omitempty"`     // the bank's reason, if it voided the contract
	Exact       bool                `json:"exact"`              // the set is proved best
	AuctionMS   float64             `json:"auction_ms"`
	VoteMS      float64             `json:"vote_ms,omitempty"`
	SettleMS    float64             `json:"settle_ms,omitempty"`
	ElapsedMS   float64             `json:"elapsed_ms"`
	Violations  []string            `json:"violations,omitempty"` // of the closest set
	RefundTotal protocol.Credits    `json:"refunded,omitempty"`
	Mode        protocol.Mode       `json:"mode,omitempty"`     // when it is paid; none: on reservation
	Replaces    string              `json:"replaces,omitempty"` // the purchase of which it is a lost unit, bought again
}

// Relaxation is a change to one unit of a request that would get offers: what is
// zero stays as it is.
type Relaxation struct {
	Unit   int              `json:"unit"`
	Price  protocol.Credits `json:"price_core_hour,omitempty"` // the ceiling to give
	Later  time.Duration    `json:"later,omitempty"`           // by how much its start and end must be allowed to be later
	Cores  int              `json:"cores,omitempty"`           // to ask for
	Offers int              `json:"offers"`                    // sellers that would offer then
	From   protocol.Credits `json:"from,omitempty"`            // of a later start: the lowest price per core-hour among them, if they say
	Change string           `json:"change"`                    // in words
}

// Counter is a seller's counter-offer for a unit that nobody sells as it is asked
// for: the request with these figures would be met by an offer of that seller, if
// it were made now.
type Counter struct {
	Unit     int              `json:"unit"`
	Resource string           `json:"resource"`
	Seller   protocol.AgentID `json:"seller"`
	Start    time.Time        `json:"start"`
	Cores    int              `json:"cores"`
	Price    protocol.Credits `json:"price_core_hour"` // what it would ask; above the ceiling, the least ceiling that would do
	Later    time.Duration    `json:"later,omitempty"` // by how much the end must be allowed to be later
	Contract protocol.Tariff  `json:"contract"`
	Change   string           `json:"change"` // in words, what differs from what was asked
}

// Word is what a buyer says of a usage record.
type Word string

// The words.
const (
	WordAgree   Word = "agree"
	WordDispute Word = "dispute"
)

// PurchasedUnit is one unit of a purchase.
type PurchasedUnit struct {
	Unit        int              `json:"unit"`
	Resource    string           `json:"resource"`
	Seller      protocol.AgentID `json:"seller"`
	Reservation string           `json:"reservation"`
	Cores       int              `json:"cores"`
	Start       time.Time        `json:"start"`
	End         time.Time        `json:"end"`
	Price       protocol.Credits `json:"price_core_hour"`
	Cost        protocol.Credits `json:"cost"`
	State       string           `json:"state"`

	// In the modes that pay after the fact, once the unit has ended:
	Paid protocol.Credits `json:"paid,omitempty"`
	How  protocol.End     `json:"ended,omitempty"` // as the bank says
	// And when it is metered, as its seller has filed it:
	Usage *protocol.Usage  `json:"usage,omitempty"`
	Due   protocol.Credits `json:"due,omitempty"`
	// Measured is what the usage rests on, if its seller launched no program.
	Measured protocol.Measured `json:"measured,omitempty"`
	// Guarantee is how the seller has kept its promise; nil: its contract has none.
	Guarantee *protocol.Guarantee `json:"guarantee,omitempty"`

	Dispute string `json:"dispute,omitempty"` // why the agent, or its owner, has not countersigned
	Record  string `json:"record,omitempty"`  // hash of the record
	Word    Word   `json:"word,omitempty"`    // that was said of it, until the bank has answered
	Heard   Word   `json:"heard,omitempty"`   // the last that the bank has answered
	// Queued is how likely the seller's queue alone would have started such a job by
	// then, as the seller has learnt.
	Queued protocol.Odds `json:"queued,omitzero"`
	// Again is the purchase in the place of a unit that was lost, and AgainMost what
	// it may cost; 0: the order had no limit.
	Again     string           `json:"again,omitempty"`
	AgainMost protocol.Credits `json:"again_most,omitempty"`
}

// MarshalJSON writes what was paid for a unit that the bank has ended also if that is
// nothing.
func (u PurchasedUnit) MarshalJSON() ([]byte, error) {
	type plain PurchasedUnit
	v := struct {
		plain
		Paid *protocol.Credits `json:"paid,omitempty"`
	}{plain: plain(u)}
	if u.How != "" || u.Paid != 0 {
		v.Paid = &u.Paid
	}
	return json.Marshal(v)
}

// Round is one round as the buyer saw it. Best has, per unit, the standing
// price per core-hour, or null when there is none.
type Round struct {
	Round    int                 `json:"round"`
	Best     []*protocol.Credits `json:"best"`
	Offers   int                 `json:"offers"`
	Refusals int                 `json:"refusals"`
	MS       float64             `json:"ms"`
	// Starts are those of the offers of Best, by unit, if any of their sellers tells how
	// sure they are.
	Starts []RoundStart `json:"starts,omitempty"`
}

// RoundStart is when the cheapest offer of a unit starts; zero: there is none.
type RoundStart struct {
	Start  time.Time     `json:"start,omitzero"`
	Queued protocol.Odds `json:"queued,omitzero"` // as of PurchasedUnit
}

// Undeliverable tells a role that a message of its own (the conversation and
// reply-with stand in the envelope) did not reach To (from LocalMesh, failure).
type Undeliverable struct {
	To protocol.AgentID
}

// Kind names the body; local bodies are never on the wire.
func (Undeliverable) Kind() string  { return "local-undeliverable" }
func (Buy) Kind() string            { return "local-buy" }
func (Approval) Kind() string       { return "local-approval" }
func (CancelPurchase) Kind() string { return "local-cancel-purchase" }
func (OwnerWord) Kind() string      { return "local-owner-word" }
func (Progress) Kind() string       { return "local-progress" }
