package user

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/rfql"
)

// mode is when a purchase is to be paid. A document with contracts is metered, as
// the order cannot change. Else it is what the owner says, or of what the bank
// offers that in which most sellers deal; on reservation, if they are equal.
func (r *Role) mode(now time.Time, wanted protocol.Mode, terms protocol.Terms, requests []rfql.Request, sellers []Known) (protocol.Mode, error) {
	if wanted == "" {
		wanted = r.cfg.Mode
	}
	metered := len(requests) > 0 && requests[0].Metered()
	switch {
	case metered && wanted == "":
		wanted = protocol.ModeMetered
	case metered != (wanted == protocol.ModeMetered):
		return "", fmt.Errorf("settlement mode %s: a document is metered if it has contracts, and only then", orUsual(wanted))
	}
	offered := r.modesOf(now, terms)
	switch {
	case wanted == "":
		wanted = usual(offered, terms, sellers)
	case !wanted.Known():
		return "", fmt.Errorf("settlement mode %.32q: want %s, %s or %s", string(wanted), protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered)
	}
	if offered != nil && !slices.Contains(offered, wanted) {
		return "", fmt.Errorf("settlement mode %s: %s settles %s %v", wanted, terms.Bank.Name(), terms.Currency, offered)
	}
	return wanted, nil
}

func orUsual(m protocol.Mode) protocol.Mode {
	if m == "" {
		return "that is usual"
	}
	return m
}

// tariffs are what units cost at the prices of items, by an order's contracts.
func (p *purchase) tariffs() func(it protocol.Item) protocol.Tariff {
	doc, err := rfql.Parse(p.row.Order.Document, p.view.Created)
	return func(it protocol.Item) protocol.Tariff {
		if err != nil || it.Unit >= doc.Len() {
			return protocol.Tariff{} // it was read when it was ordered
		}
		return doc.Request(it.Unit).Tariff(it)
	}
}

// modesOf are the modes in which a bank has told that it settles a currency; nil if
// it is not known.
func (r *Role) modesOf(now time.Time, terms protocol.Terms) []protocol.Mode {
	k, ok := r.known[terms.Bank]
	if !ok || k.gone(now) {
		return nil
	}
	told := k.told()
	if !slices.Contains(told.After, terms) {
		return told.Modes
	}
	return slices.DeleteFunc(slices.Clone(told.Modes), func(m protocol.Mode) bool { return m == protocol.ModeOnReservation })
}

// usual is the mode of those that need no contract in which most sellers deal.
func usual(offered []protocol.Mode, terms protocol.Terms, sellers []Known) protocol.Mode {
	best, most := protocol.ModeOnReservation, -1
	for _, m := range []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion} {
		if offered != nil && !slices.Contains(offered, m) {
			continue
		}
		n := 0
		for i := range sellers {
			if told := &sellers[i].Presence; slices.Contains(told.Terms, terms) && slices.Contains(told.Modes, m) {
				n++
			}
		}
		if n > most {
			best, most = m, n
		}
	}
	return best
}
