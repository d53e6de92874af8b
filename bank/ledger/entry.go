package ledger

import (
	"fmt"
	"slices"
	"time"

	"ramp/bank/row"
	"ramp/protocol"
)

// Kind says what happened in an entry. The numbers are stored.
type Kind byte

// The kinds of entry.
const (
	KindOpen      Kind = 1  // an account was opened
	KindOverdraft Kind = 2  // an overdraft limit was set
	KindCredit    Kind = 3  // the issuer credited an account
	KindHold      Kind = 4  // an amount was held
	KindPost      Kind = 5  // a hold was posted, fully or partly
	KindVoidHold  Kind = 6  // a hold was released
	KindExpire    Kind = 7  // a hold's time was over
	KindSettle    Kind = 8  // a bundle was paid
	KindVoid      Kind = 9  // a bundle was voided
	KindRefund    Kind = 10 // a seller paid a unit back
	KindPolicy    Kind = 11 // a currency got its policy
	KindGroup     Kind = 12 // a group got its shares, members and clusters
	KindStanding  Kind = 13 // an account was frozen, unfrozen or closed
	KindAllowance Kind = 14 // an account's income was set
	KindRate      Kind = 15 // a rate of exchange was set
	KindRecovery  Kind = 16 // recovery began or ended
	KindTransfer  Kind = 17 // the operator moved money between two accounts
	KindReserve   Kind = 18 // a bundle was settled, and its units were held
	KindComplete  Kind = 19 // the hold of a unit ended, posted fully, partly or not at all
	KindUsage     Kind = 20 // a seller filed the usage of a unit
	KindDispute   Kind = 21 // its user disputed that
	KindDraw      Kind = 22 // a bundle was paid out of a voucher's hold
	KindIncome    Kind = 23 // an account got its income, less the decay
	KindExchange  Kind = 24 // an amount was exchanged for one of another currency

	KindInvite Kind = 25 // an invitation was made or withdrawn
	KindEnrol  Kind = 26 // an agent enrolled by one

	lastKind = KindEnrol
)

func (k Kind) String() string {
	return nameOf("kind", byte(k),
		"", "open", "overdraft", "credit", "hold", "post", "void-hold", "expire", "settle", "void", "refund",
		"policy", "group", "standing", "allowance", "rate", "recovery", "transfer",
		"reserve", "complete", "usage", "dispute", "draw", "income", "exchange",
		"invite", "enrol")
}

// nameOf is the name of a stored number, for people.
func nameOf(what string, n byte, names ...string) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return fmt.Sprintf("%s(%d)", what, n)
}

// Entry is one numbered record of the ledger. Numbers begin at 1 and have no
// gaps; times never fall. An entry is never changed or removed.
type Entry struct {
	Number    uint64
	Time      time.Time
	Kind      Kind
	Legs      []Leg               // sums to zero in each currency
	Contract  protocol.ContractID // the bundle's; in a transfer, the disputed one, if any
	Unit      int                 // in refund, complete, usage, dispute and transfer
	Hold      uint64              // in hold, post, void-hold, expire, complete, usage and dispute; in draw and reserve the voucher's
	User      protocol.AgentID    // in void and reserve: the bundle's
	Currency  string              // in void and reserve: the bundle's
	Reason    protocol.Code       // in void
	Mode      protocol.Mode       // in reserve
	Total     protocol.Credits    // in reserve: held; in usage: due
	Units     []HeldUnit          // in reserve
	How       protocol.End        // in complete
	Key       string              // of the row that the entry sets (policy … recovery)
	Value     []byte              // of that row; empty: the row is deleted
	Ref       string              // note of the sender or the operator
	Signature []byte              // over Octets, in an operator's act
}

// HeldUnit is a unit whose cost an entry held. The units' holds have successive numbers,
// and their legs follow in the same order.
type HeldUnit struct {
	Unit int
	Hold uint64
	Legs int // one per account of the hold
}

// Leg is the effect of an entry on one account.
type Leg struct {
	Line     uint32           // number of account and currency together, from 1
	Account  protocol.AgentID // filled in by whoever reads the lines
	Currency string           // likewise
	Amount   protocol.Credits // added to the balance
	Held     protocol.Credits // added to the amount held
	After    protocol.Credits // the balance after it
}

// maxLegs bounds the legs of an entry. A bundle has one for its user and one for each
// seller; among groups, one for each member of a seller's group.
const maxLegs = 1 << 12

// signedVersion begins the value of an entry that has a signature at its end.
const signedVersion = 2

// encode is the value of an entry; its number is the key.
func (e *Entry) encode(contract *contractKey) []byte {
	b := e.appendBody(row.New(row.Version, 128), contract)
	if len(e.Signature) > 0 {
		b[0] = signedVersion
		b = b.String(string(e.Signature))
	}
	return b
}

func (e *Entry) appendBody(b row.Value, contract *contractKey) row.Value {
	b = b.Byte(byte(e.Kind)).Time(row.Nanos(e.Time))
	if contract != nil {
		b = b.Octets(contract[:])
	}
	b = e.appendDetails(b)
	b = b.Count(len(e.Legs))
	for _, leg := range e.Legs {
		b = b.Uvarint(uint64(leg.Line)).Credits(leg.Amount).Credits(leg.Held).Credits(leg.After)
	}
	return b
}

// Octets are the bytes that the bank signs of an operator's act: the whole entry but the signature,
// with its number, its bank and the accounts of its legs, which must have been filled in.
func (e *Entry) Octets(bank protocol.AgentID) []byte {
	b := row.Value(nil).String("ramp: act of a bank's operator, version 1")
	b = b.Agent(bank).Uvarint(e.Number)
	b = e.appendBody(b, nil)
	b = b.String(string(e.Contract))
	for _, leg := range e.Legs {
		b = b.Agent(leg.Account).String(leg.Currency)
	}
	return b
}

// Act reports whether the entry is an act of the bank's operator, which a bank signs.
func (e *Entry) Act() bool {
	switch e.Kind {
	case KindOpen, KindOverdraft, KindCredit, KindTransfer:
		return true
	case KindComplete:
		return e.How == protocol.EndArbitrated
	}
	return e.Kind.table() != ""
}

var tableOf = map[Kind]string{
	KindPolicy: TablePolicies, KindGroup: TableGroups, KindStanding: TableStanding, KindAllowance: TableAllowances,
	KindRate: TableRates, KindRecovery: TableRecovery, KindInvite: TableInvitations, KindEnrol: TableEnrolments,
}

// table is the table that an entry of this kind sets one row of; "" for none.
func (k Kind) table() string { return tableOf[k] }

func (k Kind) hasContract() bool {
	return slices.Contains([]Kind{KindSettle, KindVoid, KindRefund, KindReserve, KindComplete, KindUsage, KindDispute, KindDraw}, k)
}

func (k Kind) decides() bool {
	return k == KindSettle || k == KindVoid || k == KindReserve || k == KindDraw
}

func (k Kind) endsUnit() bool { return k == KindRefund || k == KindComplete }

// Receipt is the receipt of an entry that decided a bundle, without refunds and ends.
// Its legs must have been filled in.
func (e *Entry) Receipt(bank protocol.AgentID) (protocol.Receipt, error) {
	r := protocol.Receipt{
		Version: ReceiptVersion, Bank: bank, Contract: e.Contract, Outcome: protocol.OutcomeVoid, Reason: e.Reason,
		Entry: e.Number, Time: e.Time, User: e.User, Currency: e.Currency,
	}
	switch {
	case e.Kind == KindVoid:
		return r, nil
	case e.Kind == KindReserve:
		r.Outcome, r.Total, r.Mode = protocol.OutcomeSettled, e.Total, e.Mode
		return r, nil
	case (e.Kind == KindSettle || e.Kind == KindDraw) && len(e.Legs) > 0:
		pay := e.Legs[0] // the user's comes first
		r.Outcome, r.User, r.Total, r.Currency = protocol.OutcomeSettled, pay.Account, -pay.Amount, pay.Currency
		return r, nil
	}
	return r, fmt.Errorf("entry %d is a %s and decides nothing", e.Number, e.Kind)
}

// AddTo adds the end or the refund of a unit to the receipt of its bundle.
func (e *Entry) AddTo(r *protocol.Receipt) {
	switch {
	case e.Kind == KindComplete && e.How != endCancelled:
		r.Ends = append(r.Ends, protocol.UnitEnd{Unit: e.Unit, Paid: e.paid(), How: e.How, Entry: e.Number, Time: e.Time})
	case e.Kind.endsUnit():
		r.Refunds = append(r.Refunds, e.Refund())
	}
}

// Refund is the refund of a unit, or its cancellation while it was held.
func (e *Entry) Refund() protocol.Refund {
	r := protocol.Refund{Unit: e.Unit, Entry: e.Number, Time: e.Time}
	switch {
	case e.Kind == KindComplete:
		r.Amount = e.released() - e.paid()
	case len(e.Legs) > 0:
		r.Amount = -e.Legs[0].Amount // the seller's comes first
	}
	return r
}

// released is the amount that an entry freed of holds.
func (e *Entry) released() protocol.Credits {
	var sum protocol.Credits
	for _, leg := range e.Legs {
		sum -= min(leg.Held, 0)
	}
	return sum
}

// paid is the amount that an entry paid out of holds, whose legs come first.
func (e *Entry) paid() protocol.Credits {
	var sum protocol.Credits
	for _, leg := range e.Legs {
		if leg.Held < 0 {
			sum -= leg.Amount
		}
	}
	return sum
}
