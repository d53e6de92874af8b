package reserve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// deals finds every deal, claim and contract by name, and numbers reservations.
type deals struct {
	self      protocol.AgentID
	byKey     map[dealKey]*deal
	order     []*deal // in order of creation, or of key after a restart
	claims    map[string]*claim
	contracts map[protocol.ContractID]*deal
	counter   uint64 // reservations ever made
	counted   uint64 // counter in the journal
}

func (ds *deals) newDeal(key dealKey, hash string) *deal {
	d := &deal{dealKey: key, hash: hash}
	ds.byKey[key] = d
	ds.order = append(ds.order, d)
	return d
}

func (ds *deals) add(d *deal, c *claim) {
	c.deal = d
	d.claims = append(d.claims, c)
	ds.claims[c.id] = c
}

// nextID makes a reservation ID that is never used again: the counter is saved with the claim and
// never goes back, and the hash tells a seller's IDs apart if it loses its journal.
func (ds *deals) nextID(k dealKey, unit int) string {
	ds.counter++
	sum := sha256.Sum256([]byte(string(k.user) + "\x00" + k.conversation))
	return fmt.Sprintf("%s-%s-%d-%d", ds.self.Name(), hex.EncodeToString(sum[:4]), unit, ds.counter)
}

// avoid makes sure that no new reservation gets the number of this one.
func (ds *deals) avoid(reservation string) {
	if n, ok := counterOf(reservation); ok {
		ds.counter = max(ds.counter, n)
	}
}

// attach makes a sale the contract of d. The claims that it names must exist.
func (ds *deals) attach(d *deal, sale contract.Sale) error {
	d.contract = &promise{sale: sale}
	ds.contracts[sale.Verified.ID] = d
	for _, u := range unitsOf(ds.self, sale.Bundle) {
		c := ds.claims[u.Reservation]
		if c == nil || c.deal != d {
			return fmt.Errorf("contract %s names reservation %s, which its deal lacks", sale.Verified.ID, u.Reservation)
		}
		c.named = true
		d.contract.claims = append(d.contract.claims, c)
	}
	return nil
}

// unitsOf returns the units of a bundle that a seller sells.
func unitsOf(seller protocol.AgentID, b protocol.Bundle) []protocol.BundleUnit {
	var list []protocol.BundleUnit
	for _, u := range b.Units {
		if u.Seller == seller {
			list = append(list, u)
		}
	}
	return list
}

// flush saves the counter and the deals that the turn changed, and forgets those that became empty.
func (ds *deals) flush(t *turn) {
	if ds.counter != ds.counted {
		t.save(protocol.Record{Table: TableCounter, Key: counterKey, Value: fmt.Append(nil, ds.counter)})
		ds.counted = ds.counter
	}
	for _, d := range t.changed {
		if d.durable || !d.empty() {
			t.save(d.record())
			d.durable = true
		}
		if d.empty() {
			delete(ds.byKey, d.dealKey)
			ds.order = slices.DeleteFunc(ds.order, func(x *deal) bool { return x == d })
		}
	}
}

// alarm returns the next instant at which one of the deals seen in this turn needs
// attention. An alarm is already set for the others, unless it has just gone off.
func (ds *deals) alarm(t *turn) time.Time {
	seen := t.seen
	if t.all {
		seen = ds.order
	}
	for _, d := range seen {
		d.dueAt, d.seen = d.due(), false
	}
	if t.woken {
		seen = ds.order
	}
	var at time.Time
	for _, d := range seen {
		at = protocol.Earlier(at, d.dueAt)
	}
	return at
}

// lines lists all claims.
func (ds *deals) lines() []message.ReservationLine {
	var list []message.ReservationLine
	for _, d := range ds.order {
		for _, c := range d.claims {
			list = append(list, c.line())
		}
	}
	return list
}
