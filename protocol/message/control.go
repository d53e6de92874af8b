package message

import (
	"encoding/json"
	"time"

	"ramp/protocol"
)

// Buy is the owner's order to a user agent (local). ID becomes the conversation-id.
type Buy struct {
	ID       string
	Name     string // of the request, for people
	Document []byte // RFQL, already validated
	// Listed are the units whose ceiling Document left out: the agent filled in the highest
	// list price.
	Listed  []int `json:",omitempty"`
	Options Options
	Program *Program `json:",omitempty"` // to run in the units; nil: none
	Session string   `json:",omitempty"` // in which it was given; "" if it cannot be resumed but by its ID
	// Only, if set, is the one seller to ask, and Intent what will be launched without a Program.
	Only   protocol.AgentID `json:",omitempty"`
	Intent *Intent          `json:",omitempty"`
	// Replaces is the lost unit that this order of the agent itself replaces.
	Replaces *Replaces `json:",omitempty"`
}

// Replaces identifies the unit that an order replaces: its seller has lost the slot and refunded
// the price. Program means that a run of the first purchase waits for the replacement.
type Replaces struct {
	First   string // the purchase that the owner ordered
	Unit    int    // of First
	Units   int    // number of units of First
	Number  int    // of this order among those for that unit, 1..user.MaxAgain
	Of      string // the purchase that lost the unit: First, or a replacement
	Lost    int    // the unit of Of
	Program bool
	Launch  *Intent `json:",omitempty"` // of that program
}

// Launch is what the buyer intends to run in every unit; nil: nothing.
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
	return b.Intent
}

// Options of an order. Zero values mean the defaults of package protocol.
type Options struct {
	Rounds       int                `json:"rounds"`
	RoundLimit   time.Duration      `json:"round_limit"`
	NoEarlyClose bool               `json:"no_early_close,omitempty"`
	Objective    protocol.Objective `json:"objective"`
	MaxCost      protocol.Credits   `json:"max_cost,omitempty"` // of the whole purchase; 0: no limit
	MaxWait      time.Duration      `json:"max_wait,omitempty"` // latest start after now; 0: no limit
	QuoteOnly    bool               `json:"quote_only,omitempty"`
	Approve      bool               `json:"approve,omitempty"`    // ask before every purchase
	Confirm      bool               `json:"confirm,omitempty"`    // ask before this one: its owner is there; lost units are bought again
	Terms        []protocol.Terms   `json:"terms,omitempty"`      // banks to pay with; empty: all known
	Mode         protocol.Mode      `json:"mode,omitempty"`       // when to pay; empty: as bank and sellers offer
	NoReplace    bool               `json:"no_replace,omitempty"` // do not replace a unit that its seller loses
}

// Approval answers a purchase that awaits approval.
type Approval struct {
	ID  string
	Yes bool
}

// CancelPurchase asks to cancel a purchase, or one unit of it (Unit >= 0). Row is the
// journal row of a finished purchase.
type CancelPurchase struct {
	ID   string
	Unit int
	Row  []byte
}

// OwnerWord is the owner's answer to pending usage records of a purchase (local): of
// one unit, or of all if Unit is below zero.
type OwnerWord struct {
	ID     string
	Unit   int
	Record string // its hash; empty: the one that is filed
	Agree  bool
	Why    string // of a dispute
}

// Progress reports on a purchase to the owner of a user agent.
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
	Until       time.Time           `json:"until,omitzero"`    // latest end of the current phase; not stored
	Waits       string              `json:"waits,omitempty"`   // why the bank has not decided; not stored
	Units       []PurchasedUnit     `json:"units"`
	Rounds      []Round             `json:"rounds"`
	Total       protocol.Credits    `json:"total"`
	Currency    string              `json:"currency"`
	Bank        protocol.AgentID    `json:"bank,omitempty"`
	Contract    protocol.ContractID `json:"contract,omitempty"`
	Settled     bool                `json:"settled"`
	Reasons     map[string]int      `json:"reasons,omitempty"`  // why sellers refused, counted
	Programs    []string            `json:"programs,omitempty"` // sellers' notes on why they do not run the program, or not in this mode
	Advice      []string            `json:"advice,omitempty"`   // nearest relaxations, in words
	Relaxations []Relaxation        `json:"relaxations,omitempty"`
	Counters    []Counter           `json:"counters,omitempty"` // for a metered request: contracts that sellers would accept now
	Why         string              `json:"why,omitempty"`      // why nothing was bought
	Void        protocol.Code       `json:"void,omitempty"`     // the bank's reason, if it voided the contract
	Refused     protocol.Code       `json:"refused,omitempty"`  // why a seller did not hold what it had offered, or the bank gave no voucher, if that failed it
	Exact       bool                `json:"exact"`              // the set is proved optimal
	AuctionMS   float64             `json:"auction_ms"`
	VoteMS      float64             `json:"vote_ms,omitempty"`
	SettleMS    float64             `json:"settle_ms,omitempty"`
	ElapsedMS   float64             `json:"elapsed_ms"`
	Violations  []string            `json:"violations,omitempty"` // of the closest set
	Notes       []string            `json:"notes,omitempty"`      // on the request, before anybody bids
	RefundTotal protocol.Credits    `json:"refunded,omitempty"`
	Mode        protocol.Mode       `json:"mode,omitempty"`     // when it is paid; empty: on reservation
	Replaces    string              `json:"replaces,omitempty"` // the purchase whose lost unit this one replaces
}

// Relaxation is a change to one unit of a request that would get offers. Zero fields
// stay unchanged.
type Relaxation struct {
	Unit   int              `json:"unit"`
	Price  protocol.Credits `json:"price_core_hour,omitempty"` // sufficient ceiling
	Later  time.Duration    `json:"later,omitempty"`           // needed delay of start and end
	Cores  int              `json:"cores,omitempty"`           // number to request
	Offers int              `json:"offers"`                    // number of sellers that would offer
	From   protocol.Credits `json:"from,omitempty"`            // for a later start: their lowest price per core-hour, if known
	Change string           `json:"change"`                    // in words
}

// Counter is a seller's counter-offer for a unit that nobody sells as requested: the
// seller would accept a request with these figures now.
type Counter struct {
	Unit     int              `json:"unit"`
	Resource string           `json:"resource"`
	Seller   protocol.AgentID `json:"seller"`
	Start    time.Time        `json:"start"`
	Cores    int              `json:"cores"`
	Price    protocol.Credits `json:"price_core_hour"` // its price; if above the ceiling, the lowest sufficient ceiling
	Later    time.Duration    `json:"later,omitempty"` // needed delay of the end
	Contract protocol.Tariff  `json:"contract"`
	Change   string           `json:"change"` // the differences from the request, in words
}

// Word is a buyer's answer to a usage record.
type Word string

// The answers.
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
	List        protocol.Credits `json:"list_core_hour,omitempty"` // the price at which the site opens, if known

	// In the modes that pay after the fact, once the unit has ended:
	Paid protocol.Credits `json:"paid,omitempty"`
	How  protocol.End     `json:"ended,omitempty"` // according to the bank
	// If it is metered, according to its seller:
	Usage *protocol.Usage  `json:"usage,omitempty"`
	Due   protocol.Credits `json:"due,omitempty"`
	// Measured is the source of the usage, if its seller launched no program.
	Measured protocol.Measured `json:"measured,omitempty"`
	// Guarantee compares the usage with the seller's promise; nil without a promise.
	Guarantee *protocol.Guarantee `json:"guarantee,omitempty"`

	Dispute string `json:"dispute,omitempty"` // why the agent or its owner has not countersigned
	Record  string `json:"record,omitempty"`  // hash of the record
	Word    Word   `json:"word,omitempty"`    // the user's, until the bank has answered
	Heard   Word   `json:"heard,omitempty"`   // the last one that the bank has answered
	// Queued is the seller's estimate of how likely its queue alone would have started
	// such a job by Start.
	Queued protocol.Odds `json:"queued,omitzero"`
	// Again is the purchase that replaces a lost unit, and AgainMost the most that it
	// may cost; 0: the order had no limit.
	Again     string           `json:"again,omitempty"`
	AgainMost protocol.Credits `json:"again_most,omitempty"`
}

// MarshalJSON writes Paid for every unit that the bank has ended, even if it is zero.
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

// Round is one round from the buyer's view. Best is the best price per core-hour so
// far for each unit, or null.
type Round struct {
	Round    int                 `json:"round"`
	Best     []*protocol.Credits `json:"best"`
	Offers   int                 `json:"offers"`
	Refusals int                 `json:"refusals"`
	MS       float64             `json:"ms"`
	// Starts are the starts of the offers of Best, by unit, if any seller gives odds.
	Starts []RoundStart `json:"starts,omitempty"`
}

// RoundStart is the start of the cheapest offer for a unit; zero without an offer.
type RoundStart struct {
	Start  time.Time     `json:"start,omitzero"`
	Queued protocol.Odds `json:"queued,omitzero"` // as in PurchasedUnit
}

// Undeliverable reports to a role that its message did not reach To (from LocalMesh,
// failure). The envelope repeats the conversation and reply-with of that message.
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
