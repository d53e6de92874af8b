package market

import (
	"encoding/binary"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// bankBook is the bank's history, kept a second time from its durable entries.
type bankBook struct {
	last     uint64
	time     int64
	lines    map[uint32]line
	balance  map[uint32]protocol.Credits
	held     map[uint32]protocol.Credits
	outcome  map[protocol.ContractID]protocol.Outcome
	refunds  map[refundKey]protocol.Credits
	refunded map[refundKey]bool
}

type line struct {
	account  protocol.AgentID
	currency string
}

type refundKey struct {
	contract protocol.ContractID
	unit     int
}

func newBankBook() bankBook {
	return bankBook{
		lines: map[uint32]line{}, balance: map[uint32]protocol.Credits{}, held: map[uint32]protocol.Credits{},
		outcome: map[protocol.ContractID]protocol.Outcome{}, refunds: map[refundKey]protocol.Credits{}, refunded: map[refundKey]bool{},
	}
}

func (b *bankBook) balanceOf(id protocol.AgentID) protocol.Credits {
	var sum protocol.Credits
	for n, l := range b.lines {
		if l.account == id {
			sum += b.balance[n]
		}
	}
	return sum
}

// bankSaved takes a record of the bank's.
func (c *Checks) bankSaved(r protocol.Record) {
	if r.Table == ledger.TableLines {
		account, currency, err := ledger.DecodeLine(r.Value)
		n, ok := lineNumber(r.Key)
		c.check(Money, err == nil && ok, "line %q: %v", r.Key, err)
		c.bank.lines[n] = line{account, currency}
		return
	}
	e, err := ledger.DecodeEntry(r.Key, r.Value)
	c.check(Money, err == nil, "entry %q: %v", r.Key, err)
	if err != nil {
		return
	}
	b := &c.bank
	c.check(Money, e.Number == b.last+1, "entry %d follows entry %d", e.Number, b.last)
	c.check(Money, e.Time.UnixNano() >= b.time, "entry %d is older than the one before it", e.Number)
	b.last, b.time = e.Number, e.Time.UnixNano()
	c.bankLegs(e)
	c.bankDecides(e)
	if c.m != nil {
		c.honestEntry(e)
	}
}

// lineNumber reads a key of TableLines.
func lineNumber(key string) (uint32, bool) {
	if len(key) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32([]byte(key)), true
}

// bankLegs books the legs of an entry: they sum to zero, and balances follow.
func (c *Checks) bankLegs(e ledger.Entry) {
	b, sums := &c.bank, map[string]protocol.Credits{}
	for _, leg := range e.Legs {
		sums[b.lines[leg.Line].currency] += leg.Amount
		b.balance[leg.Line] += leg.Amount
		b.held[leg.Line] += leg.Held
		c.check(Money, leg.After == b.balance[leg.Line], "entry %d leaves line %d with %s, it has %s", e.Number, leg.Line, leg.After, b.balance[leg.Line])
		free := b.balance[leg.Line] - b.held[leg.Line]
		c.check(Money, free >= -c.m.limitOf(b.lines[leg.Line].account) || b.lines[leg.Line].account == ledger.Issuer, "entry %d leaves %s with %s", e.Number, b.lines[leg.Line].account, free)
		c.check(Money, b.held[leg.Line] >= 0, "entry %d leaves line %d with %s held", e.Number, leg.Line, b.held[leg.Line])
	}
	for _, currency := range sorted(sums) {
		c.check(Money, sums[currency] == 0, "entry %d: its legs in %s sum to %s", e.Number, currency, sums[currency])
	}
}

// bankDecides sees that each contract is decided once, and only when every
// seller named in it had countersigned.
func (c *Checks) bankDecides(e ledger.Entry) {
	switch e.Kind {
	case ledger.KindSettle, ledger.KindReserve, ledger.KindVoid:
		had := c.bank.outcome[e.Contract]
		c.check(AllOrNothing, had == "", "entry %d decides contract %.8s, which is %s", e.Number, e.Contract, had)
		c.bank.outcome[e.Contract] = protocol.OutcomeVoid
		c.follow("contract "+string(e.Contract), false)
		if e.Kind != ledger.KindVoid {
			c.bank.outcome[e.Contract] = protocol.OutcomeSettled
			c.settles(e)
			c.paysAsked(e.Contract)
		} else {
			c.voids(e)
		}
		if e.Kind == ledger.KindReserve {
			c.bankReserves(e)
		}
	case ledger.KindComplete:
		c.bankCompletes(e)
	case ledger.KindRefund:
		k := refundKey{e.Contract, e.Unit}
		c.check(Money, !c.bank.refunded[k], "entry %d refunds unit %d of contract %.8s again", e.Number, e.Unit, e.Contract)
		c.check(Money, c.bank.outcome[e.Contract] == protocol.OutcomeSettled, "entry %d refunds contract %.8s, which is not settled", e.Number, e.Contract)
		c.bank.refunded[k], c.bank.refunds[k] = true, e.Refund().Amount
	}
}

// settles: every unit of a contract that is paid is held for it at its seller.
func (c *Checks) settles(e ledger.Entry) {
	b, known := c.bundles[e.Contract]
	if !known && !c.paysSite(e) {
		return // between dishonest parties
	}
	c.check(AllOrNothing, known, "contract %.8s is settled, and no seller has countersigned it", e.Contract)
	var total protocol.Credits
	for _, u := range b.Units {
		claim := c.promise(e.Contract, u)
		bound := claim != nil && claim.contract == e.Contract && (claim.state == "countersigned" || claim.state == "sold")
		c.check(AllOrNothing, bound || !c.m.honest(u.Seller), "contract %.8s is settled, but unit %d of %s is %s", e.Contract, u.Unit, u.Seller.Name(), claim.describe())
		agreed := claim != nil && claim.cost == u.Cost && claim.slot.Cores == u.Slot.Cores && claim.slot.Start.Equal(u.Slot.Start) && claim.slot.End.Equal(u.Slot.End)
		c.check(HonestLoseNothing, agreed || !c.m.honest(u.Seller), "contract %.8s has unit %d of %s on other terms than it voted for", e.Contract, u.Unit, u.Seller.Name())
		total += u.Cost
	}
	if len(e.Legs) > 0 && known && e.Kind == ledger.KindSettle {
		c.check(Money, -e.Legs[0].Amount == total, "contract %.8s costs %s, and its user pays %s", e.Contract, total, -e.Legs[0].Amount)
	}
}

// voids: no unit of a contract that is void is sold.
func (c *Checks) voids(e ledger.Entry) {
	for _, u := range c.bundles[e.Contract].Units {
		claim := c.claims[u.Seller][u.Reservation]
		sold := claim != nil && claim.contract == e.Contract && claim.state == "sold"
		c.check(AllOrNothing, !sold, "contract %.8s is void, but unit %d of %s is sold", e.Contract, u.Unit, u.Seller.Name())
	}
}

// paysSite reports whether an honest site is paid by an entry.
func (c *Checks) paysSite(e ledger.Entry) bool {
	for _, leg := range e.Legs {
		if c.isSite(c.bank.lines[leg.Line].account) {
			return true
		}
	}
	return false
}
