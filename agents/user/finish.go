package user

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// afterCommit shows how vote and commit stand, and ends a decided purchase.
func (r *Role) afterCommit(now time.Time, p *purchase) protocol.Output {
	c := p.coord
	p.view.State = c.State().String()
	if !c.Over() {
		p.show(c.Chosen())
		agreed, asked := c.Votes()
		if c.State() != reserve.Voting {
			p.showBundle()
			p.view.VoteMS = p.since(c.Voted())
		}
		return p.tell(p.view.State + " " + strconv.Itoa(agreed) + "/" + strconv.Itoa(asked) + " " + strconv.Itoa(len(c.Sales())))
	}
	if c.State() == reserve.Failed {
		return r.finish(now, p, failedState(p), failedWhy(p, "not every seller holds what it offered"))
	}
	p.showBundle()
	p.view.SettleMS = auction.Milliseconds(c.Decided().Sub(c.Voted()))
	if c.State() == reserve.Settled {
		p.view.Settled = true
		p.mark(StateSettled)
		r.keepSettled(now, p)
		out := r.finish(now, p, StateSettled, "")
		return out.Join(r.await(now, &p.row, false)).Join(r.beginRun(now, p))
	}
	p.mark(StateVoid)
	p.view.Void = c.Receipt().Receipt.Reason
	return r.finish(now, p, StateVoid, failedWhy(p, voidWords(c.Receipt().Receipt.Reason, unsigned(c))))
}

// unsigned are the sellers whose copy of the contract never came, by name.
func unsigned(c *reserve.Coordinator) []string {
	var names []string
	signed := c.Sales()
	for _, id := range c.Bundle().Sellers() {
		if !slices.ContainsFunc(signed, func(s contract.Sale) bool { return s.Seller.ID == id }) {
			names = append(names, id.Name())
		}
	}
	return names
}

// voidWords say why the bank voided a contract, and of one that was not signed in time
// by whom. The bank does not say whose account it lacks; a site that was not opened one
// is what nobody thinks of.
func voidWords(why protocol.Code, unsigned []string) string {
	words := "the bank voided the contract: " + string(why)
	switch why {
	case protocol.CodeAccount:
		words += ": the buyer or a seller has none there, or is in no group"
	case protocol.CodeMode:
		words += ": its currency is not paid at the reservation"
	case protocol.CodeSettleBy:
		if len(unsigned) > 0 {
			words += ": not signed in time by " + strings.Join(unsigned, ", ")
		}
	}
	return words
}

func failedState(p *purchase) string {
	if p.stopped {
		return StateCancelled
	}
	return StateFailed
}

func failedWhy(p *purchase, why string) string {
	if p.stopped {
		return "cancelled before it was settled"
	}
	if rs := p.coord.Refusals(); len(rs) > 0 {
		last := rs[len(rs)-1]
		return why + " (" + string(last.Code) + ": " + last.Note + ")"
	}
	return why
}

func (p *purchase) since(t time.Time) float64 {
	return auction.Milliseconds(t.Sub(p.view.Created)) - p.view.AuctionMS
}

// showBundle makes the signed contract the units of the view.
func (p *purchase) showBundle() {
	v := p.coord.Bundle()
	showSigned(&p.view, v.ID, v.Bundle)
}

func (p *purchase) mark(state string) {
	for i := range p.view.Units {
		p.view.Units[i].State = state
	}
}

func sortUnits(units []message.PurchasedUnit) {
	sort.SliceStable(units, func(i, j int) bool { return units[i].Unit < units[j].Unit })
}

// finish ends a purchase: it is saved, the owner is told, and every seller that
// bid and was not chosen is told that it is free.
func (r *Role) finish(now time.Time, p *purchase, state, why string) protocol.Output {
	p.view.ElapsedMS = auction.Milliseconds(now.Sub(p.view.Created))
	out := r.fail(now, p, state, why)
	if p.buyer != nil {
		out.Send = append(out.Send, r.rejections(p)...)
	}
	return out
}

// fail saves and tells the end of a purchase.
func (r *Role) fail(now time.Time, p *purchase, state, why string) protocol.Output {
	p.view.State, p.view.Why = state, why
	delete(r.purchases, p.view.ID)
	r.order = slices.DeleteFunc(r.order, func(id string) bool { return id == p.view.ID })
	if p.row.Order.Options.QuoteOnly {
		return p.tell("done") // a question leaves nothing behind
	}
	r.end(p.view.ID)
	return protocol.Output{Save: []protocol.Record{p.save()}}.Join(p.tell("done")).Join(r.lostOver(now, p))
}

// end remembers that a purchase is over.
func (r *Role) end(id string) {
	if r.ended[id] {
		return
	}
	if len(r.endings) >= maxEnded {
		delete(r.ended, r.endings[0])
		r.endings = r.endings[1:]
	}
	r.ended[id] = true
	r.endings = append(r.endings, id)
}

func (r *Role) rejections(p *purchase) []protocol.Message {
	chosen := map[protocol.AgentID]bool{}
	if p.coord != nil && p.coord.State() != reserve.Failed {
		for _, u := range p.view.Units {
			chosen[u.Seller] = true
		}
	}
	var to []protocol.AgentID
	for _, id := range p.buyer.Bidders() {
		if !chosen[id] {
			to = append(to, id)
		}
	}
	var list []protocol.Message
	for chunk := range slices.Chunk(to, protocol.MaxReceivers) {
		list = append(list, protocol.Message{
			Performative: protocol.RejectProposal, Sender: r.ID(), Receivers: chunk,
			Protocol: protocol.ProtocolAuction, Conversation: p.view.ID,
			Body: message.Refused(protocol.CodeCeiling, "another set of offers was chosen"),
		})
	}
	return list
}

// until is when the phase that a purchase is in ends at the latest: the round, the
// owner's time to approve, the last vote, or the bank's deadline. Zero: it is over.
func (p *purchase) until() time.Time {
	switch {
	case !live(p.view.State):
		return time.Time{}
	case p.coord != nil:
		return p.coord.Until()
	case p.view.State == StateApproval:
		return p.answerBy
	case p.buyer != nil:
		return p.buyer.Until()
	}
	return time.Time{}
}

// tell sends the owner the state of the purchase, once per event.
func (p *purchase) tell(event string) protocol.Output {
	waits := ""
	if p.coord != nil {
		waits = p.coord.Waits()
	}
	key := event + " " + strconv.Itoa(len(p.view.Rounds)) + " " + p.view.State + " " + waits
	if event != "" && key == p.told {
		return protocol.Output{}
	}
	p.told = key
	view := p.view
	view.Until, view.Waits = p.until(), waits
	view.Units = slices.Clone(view.Units)
	view.Rounds = slices.Clone(view.Rounds)
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.LocalControl},
		Protocol: protocol.ProtocolControl, Conversation: p.view.ID,
		Body: message.Progress{Purchase: view, Event: event, Done: !live(view.State)},
	}}}
}

// Row is a purchase as the journal has it.
type Row struct {
	Purchase message.Purchase `json:"purchase"`
	Order    message.Buy      `json:"order"`
	Terms    protocol.Terms   `json:"terms"`
}

// ReadRow decodes a record of TablePurchases.
func ReadRow(value []byte) (Row, error) {
	var row Row
	if err := json.Unmarshal(value, &row); err != nil {
		return Row{}, fmt.Errorf("record of a purchase: %w", err)
	}
	return row, nil
}

func (p *purchase) save() protocol.Record {
	p.row.Purchase = p.view
	return saveRow(p.row)
}

func saveRow(row Row) protocol.Record {
	value, err := json.Marshal(row)
	if err != nil {
		panic(fmt.Sprintf("user: purchase %s cannot be encoded: %v", row.Purchase.ID, err))
	}
	return protocol.Record{Table: TablePurchases, Key: row.Purchase.ID, Value: value}
}
