package market

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"ramp/agents/queue"
	"ramp/bank/ledger"
	"ramp/bank/voids"
	"ramp/protocol"
)

// bankChecks checks the bank's entries; it owns bankBook.
type bankChecks struct {
	audit   *audit
	bank    *bankBook
	sites   *siteBook
	billing *jobChecks
	signed  *honestChecks
	sweeps  *sweepChecks
}

// bankBook is a second copy of the bank's history, made from its durable entries.
type bankBook struct {
	last     uint64
	time     int64
	lines    map[uint32]line
	balance  map[uint32]protocol.Credits
	held     map[uint32]protocol.Credits
	outcome  map[protocol.ContractID]protocol.Outcome
	lapsed   map[protocol.AgentID]int64 // user -> settle-by of its last contract that is void without an entry
	voids    map[protocol.AgentID]int   // bytes of the entries that void a user's contracts
	refunds  map[refundKey]protocol.Credits
	refunded map[refundKey]bool

	exchanged map[protocol.AgentID]protocol.Credits // what a user got of Currency, less what it gave
}

type line struct {
	account  protocol.AgentID
	currency string
}

type refundKey struct {
	contract protocol.ContractID
	unit     int
}

func newBankBook() *bankBook {
	return &bankBook{
		lines: map[uint32]line{}, balance: map[uint32]protocol.Credits{}, held: map[uint32]protocol.Credits{},
		outcome: map[protocol.ContractID]protocol.Outcome{}, lapsed: map[protocol.AgentID]int64{}, voids: map[protocol.AgentID]int{}, refunds: map[refundKey]protocol.Credits{}, refunded: map[refundKey]bool{}, exchanged: map[protocol.AgentID]protocol.Credits{},
	}
}

// balanceOf is what an account would have in Currency if it had exchanged nothing.
func (b *bankBook) balanceOf(id protocol.AgentID) protocol.Credits {
	sum := -b.exchanged[id]
	for n, l := range b.lines {
		if l == (line{id, Currency}) {
			sum += b.balance[n]
		}
	}
	return sum
}

// saved checks a record of the bank.
func (c *bankChecks) saved(r protocol.Record) {
	if r.Table == ledger.TableLines {
		account, currency, err := ledger.DecodeLine(r.Value)
		n, ok := lineNumber(r.Key)
		c.audit.check(Money, err == nil && ok, "line %q: %v", r.Key, err)
		c.bank.lines[n] = line{account, currency}
		return
	}
	if r.Table == voids.Table {
		c.lapses(r)
		return
	}
	e, err := ledger.DecodeEntry(r.Key, r.Value)
	c.audit.check(Money, err == nil, "entry %q: %v", r.Key, err)
	if err != nil {
		return
	}
	b := c.bank
	c.audit.check(Money, e.Number == b.last+1, "entry %d follows entry %d", e.Number, b.last)
	c.audit.check(Money, e.Time.UnixNano() >= b.time, "entry %d is older than the one before it", e.Number)
	b.last, b.time = e.Number, e.Time.UnixNano()
	c.legs(e)
	c.decides(e)
	if e.Kind == ledger.KindVoid {
		c.boundVoids(e, len(r.Key)+len(r.Value))
	}
	if c.audit.m != nil {
		c.signed.entry(e)
		c.sweeps.entry(e)
	}
}

// lineNumber reads a key of TableLines.
func lineNumber(key string) (uint32, bool) {
	if len(key) != 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32([]byte(key)), true
}

// legs books the legs of an entry, and checks that they sum to zero and that the balances agree.
func (c *bankChecks) legs(e ledger.Entry) {
	b, sums := c.bank, map[string]protocol.Credits{}
	for _, leg := range e.Legs {
		sums[b.lines[leg.Line].currency] += leg.Amount
		b.balance[leg.Line] += leg.Amount
		b.held[leg.Line] += leg.Held
		c.audit.check(Money, leg.After == b.balance[leg.Line], "entry %d leaves line %d with %s, it has %s", e.Number, leg.Line, leg.After, b.balance[leg.Line])
		free := b.balance[leg.Line] - b.held[leg.Line]
		c.audit.check(Money, free >= -c.audit.m.limitOf(b.lines[leg.Line].account) || b.lines[leg.Line].account == ledger.Issuer, "entry %d leaves %s with %s", e.Number, b.lines[leg.Line].account, free)
		c.audit.check(Money, b.held[leg.Line] >= 0, "entry %d leaves line %d with %s held", e.Number, leg.Line, b.held[leg.Line])
	}
	for _, currency := range sorted(sums) {
		c.audit.check(Money, sums[currency] == 0, "entry %d: its legs in %s sum to %s", e.Number, currency, sums[currency])
	}
}

// decides checks that each contract is decided once, and settled only if every seller in
// it has countersigned.
func (c *bankChecks) decides(e ledger.Entry) {
	switch e.Kind {
	case ledger.KindSettle, ledger.KindDraw, ledger.KindReserve, ledger.KindVoid:
		had := c.bank.outcome[e.Contract]
		c.audit.check(AllOrNothing, had == "", "entry %d decides contract %.8s, which is %s", e.Number, e.Contract, had)
		c.bank.outcome[e.Contract] = protocol.OutcomeVoid
		c.audit.follow("contract "+string(e.Contract), false)
		if e.Kind != ledger.KindVoid {
			c.bank.outcome[e.Contract] = protocol.OutcomeSettled
			c.settles(e)
			c.signed.paysAsked(e.Contract)
		} else {
			c.voids(e)
		}
		if e.Kind == ledger.KindReserve {
			c.billing.reserves(e)
		}
	case ledger.KindComplete:
		c.billing.completes(e)
	case ledger.KindRefund:
		k := refundKey{e.Contract, e.Unit}
		c.audit.check(Money, !c.bank.refunded[k], "entry %d refunds unit %d of contract %.8s again", e.Number, e.Unit, e.Contract)
		c.audit.check(Money, c.bank.outcome[e.Contract] == protocol.OutcomeSettled, "entry %d refunds contract %.8s, which is not settled", e.Number, e.Contract)
		c.bank.refunded[k], c.bank.refunds[k] = true, e.Refund().Amount
	}
}

// settles checks that the sellers hold every unit of a settled contract for it.
func (c *bankChecks) settles(e ledger.Entry) {
	b, known := c.sites.bundles[e.Contract]
	if !known && !c.paysSite(e) {
		return // between dishonest parties
	}
	c.audit.check(AllOrNothing, known, "contract %.8s is settled, but no seller has countersigned it", e.Contract)
	var total protocol.Credits
	together := known && c.audit.m.beginTogether(b)
	for _, u := range b.Units {
		c.audit.check(AllOrNothing, !together || u.Slot.Start.Equal(b.Units[0].Slot.Start), "contract %.8s has units that must begin together, and do not", e.Contract)
		claim := c.sites.promise(e.Contract, u)
		bound := claim != nil && claim.contract == e.Contract && (claim.state == "prepared" || claim.state == "countersigned" || claim.state == "sold")
		c.audit.check(AllOrNothing, bound || !c.audit.m.honest(u.Seller), "contract %.8s is settled, but unit %d of %s is %s", e.Contract, u.Unit, u.Seller.Name(), claim.describe())
		agreed := claim != nil && claim.cost == u.Cost && queue.Equal(claim.slot, u.Slot)
		c.audit.check(HonestLoseNothing, agreed || !c.audit.m.honest(u.Seller), "contract %.8s has unit %d of %s on terms that its seller did not vote for", e.Contract, u.Unit, u.Seller.Name())
		total += u.Cost
	}
	if len(e.Legs) > 0 && known && e.Kind != ledger.KindReserve {
		c.audit.check(Money, -e.Legs[0].Amount == total, "contract %.8s costs %s, but its user pays %s", e.Contract, total, -e.Legs[0].Amount)
	}
}

// beginTogether reports whether the units of a bundle must begin together.
func (m *Market) beginTogether(b protocol.Bundle) bool {
	sum, err := hex.DecodeString(b.RFQ)
	return err == nil && len(sum) == sha256.Size && m.together[[sha256.Size]byte(sum)]
}

// voids checks that no unit of a void contract is sold.
func (c *bankChecks) voids(e ledger.Entry) {
	for _, u := range c.sites.bundles[e.Contract].Units {
		claim := c.sites.claims[u.Seller][u.Reservation]
		sold := claim != nil && claim.contract == e.Contract && claim.state == "sold"
		c.audit.check(AllOrNothing, !sold, "contract %.8s is void, but unit %d of %s is sold", e.Contract, u.Unit, u.Seller.Name())
	}
}

// mostVoidEntry limits the bytes of an entry that voids a contract.
const mostVoidEntry = 256

// boundVoids checks that the void contracts of one user cost the bank no more than its allowance.
func (c *bankChecks) boundVoids(e ledger.Entry, bytes int) {
	c.bank.voids[e.User] += bytes
	most := mostVoidEntry * voids.Allowance * (1 + int(1+e.Time.Sub(Dawn)/protocol.OutcomeMemory))
	c.audit.check(Bounded, c.bank.voids[e.User] <= most, "the bank keeps %d bytes of void contracts of %s; the limit is %d", c.bank.voids[e.User], e.User.Name(), most)
}

// lapses follows the settle-by up to which a user's undecided contracts are void. It never falls.
func (c *bankChecks) lapses(r protocol.Record) {
	if r.Value == nil {
		return
	}
	user := protocol.AgentID(r.Key)
	at, err := voids.Decode(r.Key, r.Value)
	c.audit.check(AllOrNothing, err == nil && at >= c.bank.lapsed[user], "contracts of %s lapse until %d, before that until %d: %v", user.Name(), at, c.bank.lapsed[user], err)
	c.bank.lapsed[user] = at
	for id, b := range c.sites.bundles {
		c.bank.lapse(id, b)
		c.audit.follow("contract "+string(id), c.sites.signed[id] && c.bank.outcome[id] == "")
	}
}

// lapse notes that a contract is void if it is not decided and has lapsed.
func (b *bankBook) lapse(id protocol.ContractID, c protocol.Bundle) {
	if b.outcome[id] == "" && c.SettleBy.UnixNano() <= b.lapsed[c.User] {
		b.outcome[id] = protocol.OutcomeVoid
	}
}

// paysSite reports whether an entry pays an honest site.
func (c *bankChecks) paysSite(e ledger.Entry) bool {
	return slices.ContainsFunc(e.Legs, func(l ledger.Leg) bool { return c.audit.isSite(c.bank.lines[l.Line].account) })
}
