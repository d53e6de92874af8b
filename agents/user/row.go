package user

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// TablePurchases has one Row per purchase, by ID.
const TablePurchases = "purchases"

// Row is a purchase as the journal has it. The agent works on it while the purchase is
// under way or followed; View shows it to the owner.
type Row struct {
	Purchase `json:"purchase"`
	Order    message.Buy    `json:"order"`
	Terms    protocol.Terms `json:"terms"`
}

// Purchase is the state of a Row. Its JSON is the journal's, which older and newer
// agents read; message.Purchase explains the fields.
type Purchase struct {
	ID          string               `json:"id"`
	RFQ         string               `json:"rfq"`
	State       string               `json:"state"`
	Created     time.Time            `json:"created"`
	Found       int                  `json:"found"`
	Deadline    time.Time            `json:"deadline,omitzero"`
	Units       []Unit               `json:"units"`
	Rounds      []message.Round      `json:"rounds"`
	Total       protocol.Credits     `json:"total"`
	Currency    string               `json:"currency"`
	Bank        protocol.AgentID     `json:"bank,omitempty"`
	Contract    protocol.ContractID  `json:"contract,omitempty"`
	Settled     bool                 `json:"settled"`
	Reasons     map[string]int       `json:"reasons,omitempty"`
	Programs    []string             `json:"programs,omitempty"`
	Advice      []string             `json:"advice,omitempty"`
	Relaxations []message.Relaxation `json:"relaxations,omitempty"`
	Counters    []message.Counter    `json:"counters,omitempty"`
	Why         string               `json:"why,omitempty"`
	Void        protocol.Code        `json:"void,omitempty"`
	Refused     protocol.Code        `json:"refused,omitempty"`
	Exact       bool                 `json:"exact"`
	AuctionMS   float64              `json:"auction_ms"`
	VoteMS      float64              `json:"vote_ms,omitempty"`
	SettleMS    float64              `json:"settle_ms,omitempty"`
	ElapsedMS   float64              `json:"elapsed_ms"`
	Violations  []string             `json:"violations,omitempty"`
	Notes       []string             `json:"notes,omitempty"`
	RefundTotal protocol.Credits     `json:"refunded,omitempty"`
	Mode        protocol.Mode        `json:"mode,omitempty"`
	Replaces    string               `json:"replaces,omitempty"`
}

// Unit is one unit of a Purchase; message.PurchasedUnit explains the fields.
type Unit struct {
	Unit        int                 `json:"unit"`
	Resource    string              `json:"resource"`
	Seller      protocol.AgentID    `json:"seller"`
	Reservation string              `json:"reservation"`
	Cores       int                 `json:"cores"`
	Start       time.Time           `json:"start"`
	End         time.Time           `json:"end"`
	Price       protocol.Credits    `json:"price_core_hour"`
	Cost        protocol.Credits    `json:"cost"`
	State       string              `json:"state"`
	List        protocol.Credits    `json:"list_core_hour,omitempty"`
	Paid        protocol.Credits    `json:"paid,omitempty"`
	How         protocol.End        `json:"ended,omitempty"`
	Usage       *protocol.Usage     `json:"usage,omitempty"`
	Due         protocol.Credits    `json:"due,omitempty"`
	Measured    protocol.Measured   `json:"measured,omitempty"`
	Guarantee   *protocol.Guarantee `json:"guarantee,omitempty"`
	Dispute     string              `json:"dispute,omitempty"`
	Record      string              `json:"record,omitempty"`
	Word        message.Word        `json:"word,omitempty"`
	Heard       message.Word        `json:"heard,omitempty"`
	Queued      protocol.Odds       `json:"queued,omitzero"`
	Again       string              `json:"again,omitempty"`
	AgainMost   protocol.Credits    `json:"again_most,omitempty"`
}

// View is a copy of the purchase for its owner.
func (r *Row) View() message.Purchase {
	v := message.Purchase{
		ID: r.ID, RFQ: r.RFQ, State: r.State, Created: r.Created, Found: r.Found, Deadline: r.Deadline, Rounds: slices.Clone(r.Rounds),
		Total: r.Total, Currency: r.Currency, Bank: r.Bank, Contract: r.Contract, Settled: r.Settled, Reasons: r.Reasons,
		Programs: r.Programs, Advice: r.Advice, Relaxations: r.Relaxations, Counters: r.Counters, Why: r.Why, Void: r.Void, Refused: r.Refused, Exact: r.Exact,
		AuctionMS: r.AuctionMS, VoteMS: r.VoteMS, SettleMS: r.SettleMS, ElapsedMS: r.ElapsedMS,
		Violations: r.Violations, Notes: r.Notes, RefundTotal: r.RefundTotal, Mode: r.Mode, Replaces: r.Replaces,
	}
	if r.Units != nil {
		v.Units = make([]message.PurchasedUnit, len(r.Units))
	}
	for i, u := range r.Units {
		v.Units[i] = message.PurchasedUnit(u)
	}
	return v
}

// ReadRow decodes a record of TablePurchases.
func ReadRow(value []byte) (Row, error) { return decode[Row]("a purchase", value) }

func decode[T any](of string, value []byte) (v T, err error) {
	if err = json.Unmarshal(value, &v); err != nil {
		err = fmt.Errorf("record of %s: %w", of, err)
	}
	return v, err
}

func (r *Row) save() protocol.Record { return record(TablePurchases, r.ID, r) }

func record(table, key string, v any) protocol.Record {
	value, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("user: %s: %s cannot be encoded: %v", table, key, err)) // only our own types come here
	}
	return protocol.Record{Table: table, Key: key, Value: value}
}

// unit finds a unit by its number; nil: the purchase has no such unit.
func (p *Purchase) unit(number int) *Unit {
	i := slices.IndexFunc(p.Units, func(u Unit) bool { return u.Unit == number })
	if i < 0 {
		return nil
	}
	return &p.Units[i]
}

// saveAndReport saves a settled purchase that has changed and shows it to its owner.
func (r *Row) saveAndReport(event string) protocol.Output {
	return protocol.Output{Save: []protocol.Record{r.save()}}.Join(r.report(event, time.Time{}))
}

// report shows a settled purchase to its owner; until is when the sellers must have
// answered its cancellation.
func (r *Row) report(event string, until time.Time) protocol.Output {
	view := r.View()
	view.Until = until
	return toOwner(r.ID, message.Progress{Purchase: view, Event: event, Done: event == "done"})
}

func toOwner(conversation string, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.LocalControl},
		Protocol: protocol.ProtocolControl, Conversation: conversation, Body: body,
	}}}
}

// Live reports whether the purchase still needed its owner or others when it was saved.
func (r Row) Live() bool { return Undecided(r.State) }

// Signed is a live purchase brought up to date from the record of its bundle, in
// reserve.TableBundles. A purchase is saved when it begins and when it is over, a
// bundle when it is signed and when the bank has decided.
func (r Row) Signed(bundle []byte) (message.Purchase, error) {
	saved, err := reserve.ReadSaved(bundle)
	if err != nil {
		return r.View(), err
	}
	var b protocol.Bundle
	octets, err := contract.Content(saved.Bundle)
	if err == nil {
		b, err = contract.Decode(octets)
	}
	if err != nil {
		return r.View(), fmt.Errorf("purchase %s: %w", r.ID, err)
	}
	r.State = saved.State.String()
	r.showBundle(contract.ID(octets), b)
	return r.View(), nil
}

func (p *Purchase) showBundle(id protocol.ContractID, b protocol.Bundle) {
	offered := map[int]Unit{}
	for _, u := range p.Units {
		offered[u.Unit] = u
	}
	p.Contract, p.Total, p.Units = id, b.Total, nil
	for _, u := range b.Units {
		p.Units = append(p.Units, Unit{
			Unit: u.Unit, Resource: u.Seller.Name(), Seller: u.Seller, Reservation: u.Reservation,
			Cores: u.Slot.Cores, Start: u.Slot.Start, End: u.Slot.End, Price: u.Price, Cost: u.Cost, State: "held",
			Queued: offered[u.Unit].Queued, List: offered[u.Unit].List,
		})
	}
}
