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
func (r *Role) mode(now time.Time, wanted protocol.Mode, terms protocol.Terms, requests []rfql.Request) (protocol.Mode, error) {
	if wanted == "" {
		wanted = r.cfg.Mode
	}
	offered := r.modesOf(now, terms.Bank)
	switch {
	case wanted == "":
		wanted = r.usual(now, offered, terms)
	case !wanted.Known():
		return "", fmt.Errorf("settlement mode %.32q: want %s, %s or %s", string(wanted), protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered)
	}
	if offered != nil && !slices.Contains(offered, wanted) {
		return "", fmt.Errorf("settlement mode %s: %s settles %v", wanted, terms.Bank.Name(), offered)
	}
	return wanted, nil
}

// modesOf are the modes that a bank has told of; nil if it is not known.
func (r *Role) modesOf(now time.Time, bank protocol.AgentID) []protocol.Mode {
	k, ok := r.known[bank]
	if !ok || k.gone(now) {
		return nil
	}
	return k.told().Modes
}

// usual is the mode of those that need no contract in which most sellers deal.
func (r *Role) usual(now time.Time, offered []protocol.Mode, terms protocol.Terms) protocol.Mode {
	best, most := protocol.ModeOnReservation, -1
	for _, m := range []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion} {
		if offered != nil && !slices.Contains(offered, m) {
			continue
		}
		n := 0
		for _, s := range r.Known(now, protocol.KindResource) {
			if slices.Contains(s.Presence.Terms, terms) && slices.Contains(s.Presence.Modes, m) {
				n++
			}
		}
		if n > most {
			best, most = m, n
		}
	}
	return best
}
