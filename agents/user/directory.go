package user

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// maxSellers bounds the sellers and banks that are remembered.
const maxSellers = 1 << 15

// directory holds the sellers and banks that have announced themselves.
type directory struct {
	known  map[protocol.AgentID]peer
	fullTo int64 // there is no room until then, in Unix nanoseconds
}

// peer is a seller or bank. It keeps the body of the announcement itself, because
// thousands of agents in one process share it.
type peer struct {
	body    protocol.Body // a message.Presence
	expires int64         // Unix nanoseconds
}

func (p peer) presence() message.Presence { return p.body.(message.Presence) }

func (p peer) gone(now time.Time) bool { return p.expires <= now.UnixNano() }

// Known is an agent that the user agent could deal with.
type Known struct {
	ID       protocol.AgentID
	Presence message.Presence
	Expires  time.Time // past: it has fallen silent
	Load     int       // eighths of its machine that an index said are allocated
	Failures int       // how often it has kept silent, as far as that counts now
}

// meet records a presence. One with an older counter is stale. An agent that has
// left stays recorded with its counter, so that no replay brings it back.
func (d *directory) meet(now time.Time, from protocol.AgentID, body protocol.Body, p message.Presence) {
	old, met := d.known[from]
	switch {
	case met && p.Counter <= old.presence().Counter:
		return
	case !met && !d.hasRoom(now):
		return
	}
	d.remember(from, peer{body: body, expires: now.Add(min(max(p.TTL, 0), protocol.MaxTTL)).UnixNano()})
}

func (d *directory) remember(id protocol.AgentID, k peer) {
	d.known[id] = k
	d.fullTo = min(d.fullTo, k.expires)
}

// hasRoom reports whether another agent can be remembered. A full directory is searched for
// those that are gone only when there is one.
func (d *directory) hasRoom(now time.Time) bool {
	switch {
	case len(d.known) < maxSellers:
		return true
	case now.UnixNano() < d.fullTo:
		return false
	}
	d.fullTo = math.MaxInt64
	for id, k := range d.known { // any order: each stands alone
		if k.gone(now) {
			delete(d.known, id)
		} else {
			d.fullTo = min(d.fullTo, k.expires)
		}
	}
	return len(d.known) < maxSellers
}

// manySilent is how many agents hardly fall silent at once: rather this one hears little, like
// most visitors of a busy market.
const manySilent = 8

// list is every agent of a kind that is present now, in order of ID. If none is, or most of many
// have fallen silent, those are listed too, unless they have left, until MaxTTL has passed.
func (d *directory) list(now time.Time, kind protocol.Kind) []Known {
	list, silent := make([]Known, 0, len(d.known)), []Known(nil)
	for id, k := range d.known {
		p := k.presence()
		x := Known{ID: id, Presence: p, Expires: time.Unix(0, k.expires).UTC()}
		switch {
		case p.Agent != kind:
		case !k.gone(now):
			list = append(list, x)
		case p.TTL > 0 && now.Before(x.Expires.Add(protocol.MaxTTL)):
			silent = append(silent, x)
		}
	}
	if len(list) == 0 || len(silent) >= manySilent && len(silent) > len(list) {
		list = append(list, silent...)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
	return list
}

// terms picks the bank and currency that most of the sellers accept, among those wanted; empty:
// those of all known banks. Ties go to the order of wanted, then to the smaller bank ID.
func (d *directory) terms(now time.Time, wanted []protocol.Terms, sellers []Known) (protocol.Terms, error) {
	if len(wanted) == 0 {
		for _, b := range d.list(now, protocol.KindBank) {
			wanted = append(wanted, b.Presence.Terms...)
		}
	}
	wanted, err := d.payable(now, wanted)
	if err != nil {
		return protocol.Terms{}, err
	}
	accepted := map[protocol.Terms]int{}
	for i := range sellers {
		for _, t := range sellers[i].Presence.Terms {
			accepted[t]++
		}
	}
	best := wanted[0]
	for _, t := range wanted[1:] {
		if accepted[t] > accepted[best] {
			best = t
		}
	}
	return best, nil
}

// payable drops currencies that their banks do not list, and banks in recovery. A contract in
// one would be signed and then expire as void. A bank that is not known now may have it.
func (d *directory) payable(now time.Time, wanted []protocol.Terms) ([]protocol.Terms, error) {
	var usable []protocol.Terms
	var lacks error
	for _, t := range wanted {
		var bank message.Presence
		if k, known := d.known[t.Bank]; known && !k.gone(now) {
			bank = k.presence()
		}
		switch {
		case !bank.Recovering.IsZero():
			lacks = cmp.Or(lacks, fmt.Errorf("in recovery: %s was restored from a backup and settles nothing until its operator ends that", t.Bank.Name()))
		case len(bank.Terms) == 0 || slices.Contains(bank.Terms, t):
			usable = append(usable, t)
		default:
			lacks = cmp.Or(lacks, fmt.Errorf("%s settles %s, not %s", t.Bank.Name(), currencies(bank.Terms), t.Currency))
		}
	}
	if len(usable) > 0 {
		return usable, nil
	}
	return nil, cmp.Or(lacks, fmt.Errorf("no bank is known to pay with"))
}

func currencies(list []protocol.Terms) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = t.Currency
	}
	return strings.Join(words, ", ")
}

// mode decides when a purchase is paid. A document with contracts is metered, as
// the order cannot change. Otherwise it is the wanted mode, or among the modes of
// the bank the one that most sellers accept; ties go to payment on reservation.
func (d *directory) mode(now time.Time, wanted protocol.Mode, terms protocol.Terms, requests []rfql.Request, sellers []Known) (protocol.Mode, error) {
	metered := len(requests) > 0 && requests[0].Metered()
	switch {
	case metered && wanted == "":
		wanted = protocol.ModeMetered
	case metered != (wanted == protocol.ModeMetered):
		return "", fmt.Errorf("payment mode %s: the document must have contracts if it is %s, and none otherwise", wanted, protocol.ModeMetered)
	}
	offered := d.modesOf(now, terms)
	switch {
	case wanted == "":
		wanted = usual(offered, terms, sellers)
	case !wanted.Known():
		return "", fmt.Errorf("payment mode %.32q: want %s, %s or %s", string(wanted), protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered)
	}
	if offered != nil && !slices.Contains(offered, wanted) {
		return "", fmt.Errorf("payment mode %s: for %s, %s offers only %s", wanted, terms.Currency, terms.Bank.Name(), protocol.ModeWords(offered))
	}
	return wanted, nil
}

// modesOf are the modes in which a bank settles a currency; nil if the bank is not known.
func (d *directory) modesOf(now time.Time, terms protocol.Terms) []protocol.Mode {
	k, ok := d.known[terms.Bank]
	if !ok || k.gone(now) {
		return nil
	}
	p := k.presence()
	if !slices.Contains(p.After, terms) {
		return p.Modes
	}
	return slices.DeleteFunc(slices.Clone(p.Modes), func(m protocol.Mode) bool { return m == protocol.ModeOnReservation })
}

// usual is the mode that most sellers accept, among those that need no contract.
func usual(offered []protocol.Mode, terms protocol.Terms, sellers []Known) protocol.Mode {
	best, most := protocol.ModeOnReservation, -1
	for _, m := range []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion} {
		if offered != nil && !slices.Contains(offered, m) {
			continue
		}
		n := 0
		for i := range sellers {
			if p := &sellers[i].Presence; slices.Contains(p.Terms, terms) && slices.Contains(p.Modes, m) {
				n++
			}
		}
		if n > most {
			best, most = m, n
		}
	}
	return best
}
