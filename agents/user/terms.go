package user

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// terms picks the bank and currency in which most of the sellers deal, of those the
// owner allows; ties go to the owner's order, then to the smaller bank ID.
func (r *Role) terms(now time.Time, wanted []protocol.Terms, sellers []Known) (protocol.Terms, error) {
	if len(wanted) == 0 {
		wanted = r.cfg.Terms
	}
	if len(wanted) == 0 {
		for _, b := range r.Known(now, protocol.KindBank) {
			wanted = append(wanted, b.Presence.Terms...)
		}
	}
	if len(wanted) == 0 {
		return protocol.Terms{}, fmt.Errorf("no bank is known to pay with")
	}
	wanted, err := r.payable(now, wanted)
	if err != nil {
		return protocol.Terms{}, err
	}
	deals := map[protocol.Terms]int{}
	for i := range sellers {
		for _, t := range sellers[i].Presence.Terms {
			deals[t]++
		}
	}
	best := wanted[0]
	for _, t := range wanted[1:] {
		if deals[t] > deals[best] {
			best = t
		}
	}
	return best, nil
}

// payable leaves out currencies that their banks say they do not keep: a contract in one
// would be signed, and void when its time is over. A bank that is not heard may keep it.
func (r *Role) payable(now time.Time, wanted []protocol.Terms) ([]protocol.Terms, error) {
	var kept []protocol.Terms
	var lacks error
	for _, t := range wanted {
		var own []protocol.Terms
		if k, known := r.known[t.Bank]; known && !k.gone(now) {
			own = k.told().Terms
		}
		switch {
		case len(own) == 0 || slices.Contains(own, t):
			kept = append(kept, t)
		case lacks == nil:
			lacks = fmt.Errorf("%s does not keep %s, but %s", t.Bank.Name(), t.Currency, currencies(own))
		}
	}
	if len(kept) > 0 {
		lacks = nil
	}
	return kept, lacks
}

// currencies names those of a list, with commas between.
func currencies(list []protocol.Terms) string {
	words := make([]string, len(list))
	for i, t := range list {
		words[i] = t.Currency
	}
	return strings.Join(words, ", ")
}
