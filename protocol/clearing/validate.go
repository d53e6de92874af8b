package clearing

import (
	"fmt"
	"time"

	"ramp/protocol"
)

// Validate reports whether b is valid in a problem of so many units: it has items
// for distinct units with valid slots, and its cost and figures are within bounds.
// Only the cost of the offer counts, not the prices and costs of its items.
func (b Bid) Validate(units int) error {
	units = min(units, protocol.MaxUnits)
	if n := len(b.Offer.Items); n < 1 || n > units {
		return fmt.Errorf("bid %s of %s: %d items, want 1..%d", b.Offer.ID, b.Seller, n, units)
	}
	if b.Offer.Cost < 0 || b.Offer.Cost > MaxOfferCost {
		return fmt.Errorf("bid %s of %s: cost %s, want 0..%s", b.Offer.ID, b.Seller, b.Offer.Cost, MaxOfferCost)
	}
	if b.Violations < 0 || b.Violations > MaxViolations || b.Excess < 0 || b.Excess > MaxExcess {
		return fmt.Errorf("bid %s of %s: %d violations, excess %d, want 0..%d and 0..%d",
			b.Offer.ID, b.Seller, b.Violations, b.Excess, MaxViolations, MaxExcess)
	}
	return b.validateItems(units)
}

func (b Bid) validateItems(units int) error {
	var seen [protocol.MaxUnits]bool
	for _, it := range b.Offer.Items {
		if it.Unit < 0 || it.Unit >= units {
			return fmt.Errorf("bid %s of %s: unit %d, want 0..%d", b.Offer.ID, b.Seller, it.Unit, units-1)
		}
		if seen[it.Unit] {
			return fmt.Errorf("bid %s of %s: unit %d twice", b.Offer.ID, b.Seller, it.Unit)
		}
		seen[it.Unit] = true
		if err := it.Slot.Validate(); err != nil {
			return fmt.Errorf("bid %s of %s: unit %d: %w", b.Offer.ID, b.Seller, it.Unit, err)
		}
	}
	return nil
}

func (p Problem) validate() error {
	if p.Units < 1 || p.Units > protocol.MaxUnits {
		return fmt.Errorf("%w: %d units, want 1..%d", ErrProblem, p.Units, protocol.MaxUnits)
	}
	if len(p.Bids) > MaxBids {
		return fmt.Errorf("%w: %d bids, want at most %d", ErrProblem, len(p.Bids), MaxBids)
	}
	switch p.Objective {
	case protocol.ObjectiveCost, protocol.ObjectiveTime, protocol.ObjectiveCostTime:
	default:
		return fmt.Errorf("%w: unknown %s", ErrProblem, p.Objective)
	}
	if p.MaxCost < 0 || p.Limit < 0 {
		return fmt.Errorf("%w: ceiling %s and limit %d must not be negative", ErrProblem, p.MaxCost, p.Limit)
	}
	return p.validateFixed()
}

func (p Problem) validateFixed() error {
	var seen [protocol.MaxUnits]bool
	for _, b := range p.Fixed {
		if err := b.Validate(p.Units); err != nil {
			return fmt.Errorf("%w: fixed %w", ErrProblem, err)
		}
		if !p.inTime(&b) {
			return fmt.Errorf("%w: fixed bid %s of %s ends %s, after the ceiling %s", ErrProblem,
				b.Offer.ID, b.Seller, finish(&b).Format(time.RFC3339), p.MaxFinish.Format(time.RFC3339))
		}
		for _, it := range b.Offer.Items {
			if seen[it.Unit] {
				return fmt.Errorf("%w: unit %d is fixed twice", ErrProblem, it.Unit)
			}
			seen[it.Unit] = true
		}
	}
	return nil
}
