package reserve

import "time"

// Strangers counts the reservations with the seller's mark that its journal does
// not have and that are left alone.
func (p *Participant) Strangers() int { return len(p.strangers) }

// Owed counts the refunds that a bank has still to pay.
func (p *Participant) Owed() int {
	n := 0
	for _, c := range p.claims { // in any order: it is a count
		if c.owes() {
			n++
		}
	}
	return n
}

// Began is when this life of the seller began.
func (p *Participant) Began() time.Time { return p.began }

// Unsure reports whether a reservation is held as far as the journal knows, and
// the banks have not told yet that it was not sold since.
func (p *Participant) Unsure(reservation string) bool {
	c := p.claims[reservation]
	return c != nil && c.unsure
}
