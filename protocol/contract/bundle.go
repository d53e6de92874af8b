package contract

import (
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
)

type bundle protocol.Bundle

// MaxReservation bounds a reservation's name in bytes.
const MaxReservation = protocol.MaxReservation

// Bounds of a nonce, in hex digits.
const (
	MinNonce = 16
	MaxNonce = 64
)

// The years of all times, so that any wall time fits in a Duration.
const (
	firstYear = 1970
	lastYear  = 2199
)

// inUTC converts times to the form in which they are read back: UTC, without a
// monotonic clock reading.
func inUTC(b protocol.Bundle) bundle {
	b.SettleBy = b.SettleBy.UTC().Round(0)
	b.Units = slices.Clone(b.Units)
	for i := range b.Units {
		b.Units[i].Slot.Start = b.Units[i].Slot.Start.UTC().Round(0)
		b.Units[i].Slot.End = b.Units[i].Slot.End.UTC().Round(0)
	}
	return bundle(b)
}

func (b bundle) validate() error {
	if err := b.validateHead(); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := b.validateUnits(); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

func (b bundle) validateHead() error {
	return first(
		func() error { return number("version", b.Version, protocol.BundleVersion) },
		func() error { return token("conversation", b.Conversation, protocol.MaxConversation) },
		func() error { return agent("user", b.User) },
		func() error { return agent("bank", b.Bank) },
		func() error { return currency(b.Currency) },
		func() error { return mode(b.Mode) },
		func() error { return hexDigits("rfq_sha256", b.RFQ, 64, 64) },
		func() error { return hexDigits("nonce", b.Nonce, MinNonce, MaxNonce) },
		func() error { return instant("settle_by", b.SettleBy) },
	)
}

// validateUnits checks each unit and all of them together.
func (b bundle) validateUnits() error {
	if n := len(b.Units); n < 1 || n > protocol.MaxUnits {
		return fmt.Errorf("%d units, want 1..%d: %w", n, protocol.MaxUnits, ErrTerms)
	}
	type promise struct {
		seller      protocol.AgentID
		reservation string
	}
	total, last, promised := protocol.Credits(0), -1, map[promise]bool{}
	for _, u := range b.Units {
		if u.Unit <= last || u.Unit >= protocol.MaxUnits {
			return fmt.Errorf("unit %d after %d, want rising numbers below %d: %w", u.Unit, last, protocol.MaxUnits, ErrTerms)
		}
		if err := b.validateUnit(u); err != nil {
			return fmt.Errorf("unit %d: %w", u.Unit, err)
		}
		p := promise{u.Seller, u.Reservation}
		if promised[p] {
			return fmt.Errorf("unit %d: reservation %q of %s is sold twice: %w", u.Unit, u.Reservation, u.Seller, ErrTerms)
		}
		var err error
		if total, err = total.Add(u.Cost); err != nil {
			return fmt.Errorf("total: %w: %w", ErrTerms, err)
		}
		last, promised[p] = u.Unit, true
	}
	if total != b.Total {
		return fmt.Errorf("total %s, but the units cost %s: %w", b.Total, total, ErrTerms)
	}
	return nil
}

func (b bundle) validateUnit(u protocol.BundleUnit) error {
	err := first(
		func() error { return agent("seller", u.Seller) },
		func() error { return token("reservation", u.Reservation, MaxReservation) },
		func() error { return instant("start", u.Slot.Start) },
		func() error { return instant("end", u.Slot.End) },
	)
	if err != nil {
		return err
	}
	if err := u.Slot.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if !b.SettleBy.Before(u.Slot.Start) {
		return fmt.Errorf("starts %s, not after settle_by %s: %w",
			u.Slot.Start.Format(time.RFC3339Nano), b.SettleBy.Format(time.RFC3339Nano), ErrTerms)
	}
	if err := b.validateTariff(u); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	return validateCost(u)
}

// validateTariff checks that metered units, and no others, have a tariff that fits their
// slot. A prepayment equals the ceiling (001).
func (b bundle) validateTariff(u protocol.BundleUnit) error {
	switch {
	case b.Mode != protocol.ModeMetered && u.Tariff != (protocol.Tariff{}):
		return fmt.Errorf("a tariff in a bundle of mode %s", b.Mode)
	case b.Mode != protocol.ModeMetered:
		return nil
	case u.Tariff.TimeLimit > u.Slot.Wall():
		return fmt.Errorf("time limit %s, want at most the slot's %s", u.Tariff.TimeLimit, u.Slot.Wall())
	case u.Tariff.Prepay != 0 && u.Tariff.Prepay != u.Cost:
		return fmt.Errorf("prepayment %s, want the ceiling %s or none", u.Tariff.Prepay, u.Cost)
	case u.Tariff.Least > u.Cost/2:
		return fmt.Errorf("least payment %s, want at most half of the ceiling %s", u.Tariff.Least, u.Cost)
	}
	return u.Tariff.Validate()
}

// validateCost allows a cost below the price of the slot: an offer for several units may
// be cheaper than its parts.
func validateCost(u protocol.BundleUnit) error {
	if u.Price <= 0 {
		return fmt.Errorf("price %s, want more than zero: %w", u.Price, ErrTerms)
	}
	most, err := protocol.Cost(u.Price, u.Slot.Cores, u.Slot.Wall())
	if err != nil {
		return fmt.Errorf("cost: %w: %w", ErrTerms, err)
	}
	if u.Cost <= 0 || u.Cost > most {
		return fmt.Errorf("cost %s, want more than zero and at most %s: %w", u.Cost, most, ErrTerms)
	}
	return nil
}

// sellers are the agents that must countersign, each once, in order of their first unit.
func (b bundle) sellers() []protocol.AgentID {
	var names []protocol.AgentID
	for _, u := range b.Units {
		if !slices.Contains(names, u.Seller) {
			names = append(names, u.Seller)
		}
	}
	return names
}
