package reserve

import (
	"cmp"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// voids remembers the contracts that a bank has voided. A buyer makes one for nothing, so
// the seller keeps only the contract's hash, the bank's receipt and the time until which it
// answers questions; until then a restored bank is shown the receipt, so that it cannot
// settle the contract. Beyond the bounds the seller forgets the oldest of the same buyer, and
// then the oldest of all. That is safe: a forgotten contract holds nothing, and is refused.
type voids struct {
	byID  map[protocol.ContractID]*void
	order []*void // the first to be forgotten first
	bytes int
	users map[protocol.AgentID]int // bytes
}

// void is a contract that a bank has voided.
type void struct {
	id    protocol.ContractID
	user  protocol.AgentID
	bank  protocol.AgentID
	why   protocol.Code
	until time.Time
	bytes int
}

func newVoids() *voids {
	return &voids{byID: map[protocol.ContractID]*void{}, users: map[protocol.AgentID]int{}}
}

// add saves the receipt of a void contract.
func (vs *voids) add(t *turn, r contract.VerifiedReceipt) {
	t.save(protocol.Record{Table: TableVoids, Key: string(r.Contract), Value: r.DER})
	vs.keep(r.Receipt, len(r.DER))
	for vs.users[r.User] > protocol.MaxBuyerVoids {
		vs.drop(t, slices.IndexFunc(vs.order, func(v *void) bool { return v.user == r.User }))
	}
	for vs.bytes > protocol.MaxVoids {
		vs.drop(t, 0)
	}
}

func (vs *voids) keep(r protocol.Receipt, size int) {
	v := &void{r.Contract, r.User, r.Bank, r.Reason, r.Time.Add(Retention), len(r.Contract) + size}
	at, _ := slices.BinarySearchFunc(vs.order, v, func(a, b *void) int { return cmp.Or(a.until.Compare(b.until), cmp.Compare(a.id, b.id)) })
	vs.order = slices.Insert(vs.order, at, v)
	vs.byID[v.id] = v
	vs.bytes += v.bytes
	vs.users[v.user] += v.bytes
}

func (vs *voids) read(_ string, der []byte) error {
	r, err := contract.ReadReceipt(der)
	if err == nil {
		vs.keep(r, len(der))
	}
	return err
}

func (vs *voids) drop(t *turn, i int) {
	v := vs.order[i]
	vs.order = slices.Delete(vs.order, i, i+1)
	delete(vs.byID, v.id)
	vs.bytes -= v.bytes
	if vs.users[v.user] -= v.bytes; vs.users[v.user] == 0 {
		delete(vs.users, v.user)
	}
	t.save(protocol.Record{Table: TableVoids, Key: string(v.id)})
}

// wake forgets contracts at their time.
func (vs *voids) wake(t *turn) {
	for len(vs.order) > 0 && !t.now.Before(vs.order[0].until) {
		vs.drop(t, 0)
	}
}

func (vs *voids) due() time.Time {
	if len(vs.order) == 0 {
		return time.Time{}
	}
	return vs.order[0].until
}

// refuse answers a buyer that confirms a void contract again.
func (vs *voids) refuse(t *turn, m protocol.Message, id protocol.ContractID) bool {
	v := vs.byID[id]
	if v == nil || v.user != m.Sender {
		return false
	}
	t.reply(m, protocol.Failure, message.Refused(v.why, "the bank voided the contract"))
	return true
}

// contradicted keeps a receipt by which a bank settles what it has voided. Both convict it.
func (vs *voids) contradicted(t *turn, body message.Decision) {
	v, r := vs.byID[body.Contract], body.Receipt
	if v != nil && r != nil && signedBy(v.bank, v.id, *r) && r.Outcome != protocol.OutcomeVoid {
		t.save(receiptRecord(TableContrary, *r))
	}
}

// becomeVoid keeps the receipt of a deal's contract and drops everything else of it. The
// slots are free; their claims are forgotten like those of any hold that has ended.
func (p *Participant) becomeVoid(t *turn, d *deal) {
	r := *d.contract.receipt
	for _, c := range d.contract.claims {
		c.named = false
	}
	delete(p.deals.contracts, r.Contract)
	d.contract, d.void = nil, r.Contract
	t.save(protocol.Record{Table: TableSales, Key: string(r.Contract)})
	p.voids.add(t, r)
	t.touch(d)
}
