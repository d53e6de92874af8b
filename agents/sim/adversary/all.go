package adversary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ramp/agents/sim/market"
)

// All are the adversaries, by kind.
func All() map[string]market.Adversary {
	return map[string]market.Adversary{
		"never-confirms": neverConfirms,
		"vanishes":       vanishes,
		"other-terms":    otherTerms,
		"underbids":      underbids,
		"floods":         floods,
		"odd-offers":     oddOffers,
		"double-signs":   doubleSigns,
		"cannot-pay":     cannotPay,
		"replays":        replays,
		"abandons":       abandons,
		"freeloads":      freeloads,
		"foreign":        foreign,
		"forger":         forger,
		"sybils":         sybils,
		"hoarders":       hoarders,
		"silent-groups":  silentGroups,
		"ring":           ring,
		"wash":           wash,
		"void-flood":     voidFlood,
	}
}

// Kinds are the names of All, in order.
func Kinds() []string { return slices.Sorted(maps.Keys(All())) }

// NewCast is a market's cast with all adversaries in it.
func NewCast() (*market.Cast, error) {
	c, err := market.NewCast()
	if err != nil {
		return nil, err
	}
	c.Adversaries = All()
	return c, nil
}

// Validate names the first unknown kind, and the known ones.
func Validate(wanted map[string]int) error {
	for _, kind := range slices.Sorted(maps.Keys(wanted)) {
		if All()[kind] == nil {
			return fmt.Errorf("adversaries %q: want one of %s", kind, strings.Join(Kinds(), ", "))
		}
	}
	return nil
}
