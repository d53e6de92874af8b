package auction

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// Explanation shows the owner why sellers make no offer, and which changes would get offers.
type Explanation struct {
	wants    wants
	sellers  *bidders
	standing *standing
}

// Explain returns the Explanation of the auction so far.
func (b *Buyer) Explain() Explanation { return Explanation{b.cfg.Wants, b.sellers, b.standing} }

// Why counts the reasons of the sellers that make no offer, one code per seller. If some units have
// no offer at all, only those units matter. A seller that never answered counts as silent.
func (e Explanation) Why() map[protocol.Code]int {
	counts := map[protocol.Code]int{}
	offering, lacking := e.offering()
	late := map[protocol.AgentID]bool{}
	for _, bid := range e.standing.bids {
		late[bid.Seller] = late[bid.Seller] || e.wants.late(bid.Offer)
	}
	for _, id := range e.sellers.order {
		if offering[id] {
			continue
		}
		s := e.sellers.byID[id]
		reasons := about(s.reasons, lacking)
		switch {
		case !s.replied && len(reasons) == 0:
			counts[protocol.CodeSilent]++
		case len(reasons) > 0:
			counts[decisive(reasons).Code]++
		case late[id]:
			counts[protocol.CodeLate]++
		default:
			counts[protocol.CodeCeiling]++ // it bid, but not below the call
		}
	}
	return counts
}

// Lack describes the property that all sellers lack, if they agree on one: "no site
// runs Windows (20 have Linux)". Otherwise it is empty.
func (e Explanation) Lack() string {
	_, lacking := e.offering()
	var first protocol.Reason
	have := map[string]int{}
	for _, id := range e.sellers.order {
		reasons := about(e.sellers.byID[id].reasons, lacking)
		if len(reasons) == 0 {
			return ""
		}
		r := decisive(reasons)
		if len(have) > 0 && (r.Code != first.Code || r.Term != first.Term || r.Want != first.Want) {
			return ""
		}
		first = r
		have[r.Have]++
	}
	property := lackWords(first)
	if property == "" {
		return ""
	}
	list := slices.SortedFunc(maps.Keys(have), func(x, y string) int { return cmp.Or(have[y]-have[x], cmp.Compare(x, y)) })
	parts := make([]string, min(len(list), maxLackParts))
	for i := range parts {
		parts[i] = fmt.Sprintf("%d have %s", have[list[i]], list[i])
		if have[list[i]] == 1 {
			parts[i] = "1 has " + list[i]
		}
	}
	if len(list) > len(parts) {
		parts = append(parts, "…")
	}
	return "no site " + property + " (" + strings.Join(parts, ", ") + ")"
}

// maxLackParts bounds the different properties that Lack lists.
const maxLackParts = 3

// lackWords describe a requested property; empty: the code is not about one.
func lackWords(r protocol.Reason) string {
	words := map[protocol.Code][2]string{
		protocol.CodeOS: {"runs "}, protocol.CodeOSVersion: {"has version ", " of the operating system"},
		protocol.CodeArchitecture: {"has the architecture "}, protocol.CodeCPUSpeed: {"has ", " processors"},
		protocol.CodeRAM: {"has ", " of memory per core"}, protocol.CodeDisk: {"has ", " of disk space"},
		protocol.CodeBandwidth: {"has ", " between nodes"}, protocol.CodeSize: {"has "},
	}[r.Code]
	if words[0] == "" {
		return ""
	}
	return words[0] + r.Want + words[1]
}

// maxPrograms bounds the list of Programs.
const maxPrograms = 8

// Programs lists the sellers' objections to the program that is to be launched, or to when it is
// paid, each once, with the sellers that raise it.
func (e Explanation) Programs() []string {
	var notes []string
	by := map[string][]protocol.AgentID{}
	for _, id := range e.sellers.order {
		reasons := e.sellers.byID[id].reasons
		i := slices.IndexFunc(reasons, func(r protocol.Reason) bool { return r.Code == protocol.CodeProgram || r.Code == protocol.CodeMode })
		if i < 0 {
			continue
		}
		note := reasons[i].Note
		if by[note] == nil && len(notes) == maxPrograms {
			continue
		}
		if by[note] == nil {
			notes = append(notes, note)
		}
		by[note] = append(by[note], id)
	}
	for i, note := range notes {
		who := by[note][0].Name()
		if more := len(by[note]) - 1; more > 0 {
			who = fmt.Sprintf("%s and %d more", who, more)
		}
		notes[i] = who + ": " + note
	}
	return notes
}

// offering returns the sellers with an offer that satisfies the request, and the units that no such
// offer covers. While units are lacking, it returns no sellers: offers for other units do not help.
func (e Explanation) offering() (sellers map[protocol.AgentID]bool, lacking map[int]bool) {
	sellers, lacking = map[protocol.AgentID]bool{}, map[int]bool{}
	for unit := range e.wants {
		lacking[unit] = true
	}
	for _, bid := range e.standing.bids {
		if v, _ := e.wants.violations(bid.Offer); v == 0 {
			sellers[bid.Seller] = true
			for _, it := range bid.Offer.Items {
				delete(lacking, it.Unit)
			}
		}
	}
	if len(lacking) > 0 {
		clear(sellers)
	}
	return sellers, lacking
}

// about returns the reasons that concern lacking units, or all units; if no unit
// is lacking, every reason.
func about(reasons []protocol.Reason, lacking map[int]bool) []protocol.Reason {
	if len(lacking) == 0 {
		return reasons
	}
	var list []protocol.Reason
	for _, r := range reasons {
		if lacking[r.Unit] || r.Unit == protocol.AllUnits {
			list = append(list, r)
		}
	}
	return list
}

// decisive returns the reason that would have to change first: a static term before
// a busy machine before a price. Equal ranks go to the earlier reason.
func decisive(reasons []protocol.Reason) protocol.Reason {
	best := reasons[0]
	for _, r := range reasons[1:] {
		if rank(r.Code) < rank(best.Code) {
			best = r
		}
	}
	return best
}

func rank(c protocol.Code) int {
	return 1 + slices.Index([]protocol.Code{protocol.CodeBusy, protocol.CodePrice, protocol.CodeStands}, c)
}

// Violations describes the terms of the request that a set breaks.
func (b *Buyer) Violations(set []protocol.Bid) []string {
	var list []string
	var total protocol.Credits
	for _, bid := range set {
		total += bid.Offer.Cost // bounded by clearing.MaxOfferCost and MaxUnits
		for _, it := range bid.Offer.Items {
			w := b.cfg.Wants[it.Unit]
			if it.Price > w.Ceiling {
				list = append(list, fmt.Sprintf("%s%s credits per core-hour, %s %% above your limit of %s", b.unitWords(it.Unit), it.Price.Cents(),
					percent(perMille(int64(it.Price-w.Ceiling), int64(w.Ceiling))), w.Ceiling))
			}
			if late := w.lateness(it); late > 0 {
				list = append(list, b.unitWords(it.Unit)+ceilMinutes(late)+" later than requested")
			}
		}
	}
	if b.cfg.MaxCost > 0 && total > b.cfg.MaxCost {
		list = append(list, fmt.Sprintf("%s, above your limit of %s", total.Cents(), b.cfg.MaxCost))
	}
	return list
}

// unitWords name a unit, if there are several.
func (b *Buyer) unitWords(unit int) string {
	if len(b.cfg.Wants) == 1 {
		return ""
	}
	return fmt.Sprintf("unit %d: ", unit+1)
}

// percent prints per mille as per cent, rounded up to a whole one from 10 % on.
func percent(perMille int) string {
	if perMille >= 100 || perMille%10 == 0 {
		return fmt.Sprint((perMille + 9) / 10)
	}
	return fmt.Sprintf("%d.%d", perMille/10, perMille%10)
}

func offers(n int) string {
	if n == 1 {
		return "1 offer"
	}
	return fmt.Sprintf("%d offers", n)
}

func ceilMinutes(d time.Duration) string {
	m := (d + time.Minute - 1) / time.Minute
	if m < 120 {
		return fmt.Sprintf("%d min", m)
	}
	return fmt.Sprintf("%d h %02d min", m/60, m%60)
}
