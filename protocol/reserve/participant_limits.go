package reserve

import (
	"fmt"
	"math/bits"
	"time"

	"ramp/protocol"
)

// MaxClaims bounds the units that a Participant remembers, sold ones included;
// an offer beyond it is refused with limit. MaxBuyers bounds those of whom it
// remembers what they hold, or have lately held: a further one is refused with
// limit until others are forgotten.
const (
	MaxClaims    = 1 << 16
	MaxBuyers    = 1 << 15
	maxStrangers = MaxClaims // reservations that a lost journal must have made
	maxSwept     = 1 << 16   // freed reservations that are known again should the batch system bring them back
)

// maxCoreSeconds bounds BuyerCoreSeconds, so that sums stay in 63 bits.
const maxCoreSeconds = 1 << 60

// buyerHolds is how much of the machine one buyer blocks, or has lately blocked,
// without buying it. What was spent is forgiven at BuyerCoreSeconds per hour, so
// that nobody can keep a machine reserved for nothing by holding and letting go.
type buyerHolds struct {
	holds int   // claims not sold
	asked int   // of them, those that the batch system has not granted yet
	spent int64 // core-seconds, as of at
	at    time.Time
}

// Retune changes how long votes hold and what one buyer may hold; the values are
// those of a valid ParticipantConfig. What is held stays held.
func (p *Participant) Retune(hold time.Duration, buyerHolds int, buyerCoreSeconds int64) {
	p.cfg.Hold, p.cfg.BuyerHolds, p.cfg.BuyerCoreSeconds = hold, buyerHolds, buyerCoreSeconds
}

// withinLimits reports whether a buyer may have another offer held.
func (p *Participant) withinLimits(now time.Time, buyer protocol.AgentID, o protocol.Offer) (protocol.Reason, bool) {
	no := func(c protocol.Code, format string, args ...any) (protocol.Reason, bool) {
		return protocol.Reason{Code: c, Unit: protocol.AllUnits, Note: fmt.Sprintf(format, args...)}, false
	}
	if p.unsold+len(o.Items) > MaxUnsold || len(p.claims)+len(o.Items) > MaxClaims {
		return no(protocol.CodeLimit, "%d units are held here, and %d remembered", p.unsold, len(p.claims))
	}
	b := buyerHolds{at: now}
	if known := p.buyers[buyer]; known != nil {
		b = *known
	} else if len(p.buyers) >= MaxBuyers {
		return no(protocol.CodeLimit, "%d other buyers are remembered here", len(p.buyers))
	}
	if b.holds+len(o.Items) > p.cfg.BuyerHolds {
		return no(protocol.CodeHoldLimit, "%d units held and not bought, at most %d", b.holds, p.cfg.BuyerHolds)
	}
	if b.asked+len(o.Items) > p.cfg.BuyerReserves {
		return no(protocol.CodeHoldLimit, "%d reservations wait for the batch system, at most %d of one buyer", b.asked, p.cfg.BuyerReserves)
	}
	b.forgive(now, p.cfg.BuyerCoreSeconds)
	for _, it := range o.Items {
		if b.spent += coreSeconds(it.Slot); b.spent > p.cfg.BuyerCoreSeconds {
			return no(protocol.CodeHoldLimit, "%d core-seconds held and not bought, at most %d an hour", b.spent, p.cfg.BuyerCoreSeconds)
		}
	}
	return protocol.Reason{}, true
}

// forgive lets spent fall by limit per hour since it was last looked at.
func (b *buyerHolds) forgive(now time.Time, limit int64) {
	elapsed := min(max(now.Sub(b.at), 0), time.Hour)
	hi, lo := bits.Mul64(uint64(limit), uint64(elapsed))
	forgiven, _ := bits.Div64(hi, lo, uint64(time.Hour))
	b.spent = max(0, b.spent-int64(forgiven))
	b.at = now
}

// take counts a new claim against its buyer.
func (p *Participant) take(now time.Time, c *claim) {
	p.unsold++
	b := p.buyers[c.deal.user]
	if b == nil {
		b = &buyerHolds{at: now}
		p.buyers[c.deal.user] = b
	}
	b.forgive(now, p.cfg.BuyerCoreSeconds)
	b.holds++
	b.spent += c.coreSeconds()
	if c.state == ClaimReserving {
		b.asked++
	}
}

// answered ends the count of a claim for which the batch system was asked.
func (p *Participant) answered(c *claim) {
	if c.state == ClaimReserving {
		p.buyers[c.deal.user].asked--
	}
}

// drop ends the count of a claim that was not bought; what it spent stays.
func (p *Participant) drop(now time.Time, c *claim) {
	p.unsold--
	b := p.buyers[c.deal.user]
	b.forgive(now, p.cfg.BuyerCoreSeconds)
	b.holds--
}

// bought ends the count of a claim that was: a good buyer has spent nothing.
func (p *Participant) bought(now time.Time, c *claim) {
	p.drop(now, c)
	b := p.buyers[c.deal.user]
	b.spent = max(0, b.spent-c.coreSeconds())
}

// forgetBuyers drops those of whom there is nothing to remember.
func (p *Participant) forgetBuyers(now time.Time) {
	for id, b := range p.buyers { // in any order: each by itself
		b.forgive(now, p.cfg.BuyerCoreSeconds)
		if b.holds == 0 && b.spent == 0 {
			delete(p.buyers, id)
		}
	}
}
