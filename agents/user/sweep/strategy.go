package sweep

import (
	"fmt"
	"slices"
	"strings"
)

// Strategy is how tasks are assigned to resources (004, figure 2).
type Strategy string

const (
	// Cost fills the cheapest resource with what it can end by the deadline, then the next.
	Cost Strategy = "cost"
	// CostTime does so by groups of equal cost; inside a group, each task goes where it ends first.
	CostTime Strategy = "cost-time"
	// Time sends each task to where it ends first, among resources whose cost is at most the
	// money left per unassigned task.
	Time Strategy = "time"
	// ConservativeTime keeps that share of the money for every task while it assigns the others.
	ConservativeTime Strategy = "conservative-time"
	// None sends tasks round robin to whoever is free.
	None Strategy = "none"
)

// Strategies are all strategies, the default first.
func Strategies() []Strategy { return []Strategy{CostTime, Cost, Time, ConservativeTime, None} }

// ParseStrategy reads the name of a strategy.
func ParseStrategy(s string) (Strategy, error) {
	if slices.Contains(Strategies(), Strategy(s)) {
		return Strategy(s), nil
	}
	var names []string
	for _, x := range Strategies() {
		names = append(names, string(x))
	}
	return "", fmt.Errorf("unknown strategy %q: want %s", s, strings.Join(names, ", "))
}
