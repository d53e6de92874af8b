package ledger

import (
	"math/bits"
	"slices"
	"time"

	"ramp/protocol"
)

// purse is the money that one user can spend in one currency during a decision: its own
// and, under barter, its group's.
type purse struct {
	user        protocol.AgentID
	own, group  *line // nil: it does not exist yet, or does not pay
	haveOwn     protocol.Credits
	haveGroup   protocol.Credits
	bartering   bool
	memberOf    bool
	frozen      bool                       // the group's account
	heldPerLine map[*line]protocol.Credits // beyond what the lines say
}

// purse counts the money of a user that may spend. A line that does not exist yet has nothing in
// it, and neither has one below its limit; an earlier voucher is good all the same.
func (gs *Groups) purse(now time.Time, a *account, currency string) *purse {
	p := &purse{user: a.id, own: a.line(currency)}
	p.haveOwn = max(0, gs.books.available(now, p.own))
	p.bartering = gs.books.policies[currency].Kind == PolicyBarter
	if !p.bartering {
		return p
	}
	g := gs.memberOf[a.id]
	if p.memberOf = g != nil; !p.memberOf {
		return p
	}
	p.group = g.account.line(currency)
	if p.frozen = g.account.frozen; !p.frozen {
		p.haveGroup = max(0, gs.books.available(now, p.group))
	}
	switch g.member(a.id).Pays {
	case PaysUser:
		p.haveGroup, p.frozen = 0, false
	case PaysGroup:
		p.haveOwn = 0
	}
	return p
}

// available is all money in the purse; a sum that does not fit counts as MaxCredits.
func (p *purse) available() protocol.Credits {
	sum, err := p.haveOwn.Add(p.haveGroup)
	if err != nil {
		return protocol.MaxCredits
	}
	return sum
}

// add puts the money of a voucher back into the purse, into the accounts that held it.
// From a group that the user has left since, only that money can be spent, and none of
// a new group's; a user without a group can spend only the voucher's.
func (p *purse) add(parts []part) {
	if p.bartering && !p.memberOf {
		p.memberOf, p.haveOwn = true, 0
	}
	for _, q := range parts {
		have := &p.haveOwn
		if q.line != p.own {
			have = &p.haveGroup
			if q.line != p.group {
				p.group, p.haveGroup = q.line, 0
			}
		}
		if sum, err := have.Add(q.amount); err == nil {
			*have = sum
		}
		p.note(q.line, -q.amount)
	}
}

func (p *purse) note(n *line, amount protocol.Credits) {
	if p.heldPerLine == nil {
		p.heldPerLine = map[*line]protocol.Credits{}
	}
	p.heldPerLine[n] += amount
}

// take splits an amount among the accounts that pay it, the user's first.
func (p *purse) take(amount protocol.Credits) ([]part, error) {
	if p.bartering && !p.memberOf {
		return nil, refuse(protocol.CodeAccount, "%s is in no group", p.user)
	}
	switch have := p.available(); {
	case have < amount && p.frozen:
		return nil, refuse(protocol.CodeFunds, "hold of %s: %s available, and the group of %s is frozen", amount, have, p.user)
	case have < amount:
		return nil, refuse(protocol.CodeFunds, "hold of %s: %s available", amount, have)
	}
	own := min(amount, max(0, p.haveOwn))
	parts := make([]part, 0, maxParts)
	for _, q := range []part{{p.own, own}, {p.group, amount - own}} {
		if q.amount == 0 {
			continue
		}
		if held := q.line.held + p.heldPerLine[q.line]; q.amount > protocol.MaxCredits-held { // overdraft can make more available than fits
			return nil, refuse(protocol.CodeOverflow, "hold of %s: with %s held, %s", q.amount, held, protocol.ErrOverflow)
		}
		parts = append(parts, q)
		p.note(q.line, q.amount)
	}
	p.haveOwn -= own
	p.haveGroup -= amount - own
	return parts, nil
}

// earning is one account's share of a payment.
type earning struct {
	account *account
	amount  protocol.Credits
}

// earnings splits a payment to a seller among the accounts that earn it: the seller's
// own or, under barter, its group's and the members' (000), to the last micro-credit.
func (gs *Groups) earnings(seller protocol.AgentID, currency string, amount protocol.Credits) ([]earning, error) {
	if gs.books.policies[currency].Kind != PolicyBarter {
		a, err := gs.books.find(seller, currency)
		return []earning{{a, amount}}, err
	}
	g := gs.sellsFor[seller]
	if g == nil {
		return nil, refuse(protocol.CodeAccount, "%s is a cluster of no group", seller)
	}
	shared := share(amount, g.Shared)
	list := append(make([]earning, 0, len(g.Members)+1), earning{g.account, shared})
	for i, part := range apportion(amount-shared, g.Members) {
		list = append(list, earning{gs.books.accounts[g.Members[i].User], part})
	}
	return slices.DeleteFunc(list, func(e earning) bool { return e.amount == 0 }), nil
}

// share is parts per million of an amount, rounded half away from zero.
func share(amount protocol.Credits, ppm int64) protocol.Credits {
	whole, rest := divide(amount, ppm)
	if rest >= Whole/2 {
		whole++
	}
	return whole
}

// divide is amount · ppm / 10⁶, and the rest in millionths; ppm is 0..10⁶.
func divide(amount protocol.Credits, ppm int64) (whole protocol.Credits, rest int64) {
	hi, lo := bits.Mul64(uint64(amount), uint64(ppm))
	q, r := bits.Div64(hi, lo, uint64(Whole))
	return protocol.Credits(q), int64(r)
}

// apportion divides an amount by shares with largest remainders, so that the parts sum
// to it: the rest after rounding down goes, one micro-credit each, to the members that
// lost most by it, and among equals to the smaller agent ID.
func apportion(amount protocol.Credits, members []Member) []protocol.Credits {
	parts, rests := make([]protocol.Credits, len(members)), make([]int64, len(members))
	order := make([]int, len(members))
	left := amount
	for i, m := range members {
		parts[i], rests[i] = divide(amount, m.Share)
		left -= parts[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return int(rests[y] - rests[x]) })
	for i := range int(left) {
		parts[order[i]]++
	}
	return parts
}
