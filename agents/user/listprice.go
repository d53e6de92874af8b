package user

import (
	"errors"
	"fmt"
	"slices"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// farAbove times the highest list price is a ceiling that causes a note to the owner.
const farAbove = 2

// listed is the range of the list prices per core-hour at which a unit is sold. A list
// price is the start price that a site announces.
type listed struct{ low, high protocol.Credits }

// listOf is the list price that a site announced last; zero: none is known.
func (d *directory) listOf(id protocol.AgentID) protocol.Credits {
	if k, ok := d.known[id]; ok {
		return k.presence().Start
	}
	return 0
}

// listPrices are those of each unit, of the sellers that take these terms and have the machine for
// it. Without such a machine all their prices count, so that the sellers can say why they refuse.
func listPrices(requests []rfql.Request, terms protocol.Terms, sellers []Known) []listed {
	list := make([]listed, len(requests))
	var all listed
	for i := range sellers {
		p := &sellers[i].Presence
		if p.Start <= 0 || !slices.Contains(p.Terms, terms) {
			continue
		}
		all.add(p.Start)
		for unit, q := range requests {
			if len(rfql.Match(q, p.Properties)) == 0 {
				list[unit].add(p.Start)
			}
		}
	}
	for unit := range list {
		if list[unit].high == 0 {
			list[unit] = all
		}
	}
	return list
}

func (l *listed) add(price protocol.Credits) {
	if l.low == 0 || price < l.low {
		l.low = price
	}
	l.high = max(l.high, price)
}

func (l listed) String() string {
	if l.low == l.high {
		return l.low.Cents()
	}
	return l.low.Cents() + "–" + l.high.Cents()
}

// fill sets the ceilings that an order leaves out to the highest list price, and then makes the
// request metered if the order wants that. No margin is needed: a seller bids from the ceiling, or
// its own lower list price, down.
func fill(order *message.Buy, doc rfql.Document, terms protocol.Terms, list []listed) (rfql.Document, error) {
	if doc.Priced() {
		return doc, nil
	}
	for _, q := range doc.Requests() {
		if q.Price == 0 && list[q.Unit].high == 0 {
			return doc, fmt.Errorf("no site lists a price in %s of %s: name a limit with --max-price", terms.Currency, terms.Bank)
		}
		if q.Price == 0 {
			order.Listed = append(order.Listed, q.Unit)
		}
	}
	doc, err := doc.Fill(func(q rfql.Request) protocol.Credits { return list[q.Unit].high })
	if order.Options.Mode == protocol.ModeMetered {
		doc = doc.WithContracts()
	}
	order.Document = doc.XML()
	return doc, err
}

// errNobody ends an order without a ceiling while nobody lists a price.
var errNobody = errors.New("no site is known: 'ramp doctor' finds the cause")

// farAboveNotes tell the owner about ceilings far above the list prices, before anybody bids.
func farAboveNotes(requests []rfql.Request, list []listed) []string {
	var notes []string
	for _, q := range requests {
		if l := list[q.Unit]; l.high == 0 || q.Price/farAbove <= l.high {
			continue
		}
		note := fmt.Sprintf("sites list %s per core-hour; you allowed %s", list[q.Unit], q.Price.Cents())
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}
