package explore

import (
	"fmt"

	"ramp/agents/sim/adversary"
	"ramp/agents/sim/market"
)

// ScenarioVersion is the version of scenario files.
const ScenarioVersion = 1

// Scenario is a market in a file.
type Scenario struct {
	Version int           `json:"version" yaml:"version"`
	Note    string        `json:"note,omitempty" yaml:"note,omitempty"` // its purpose
	Market  market.Config `json:"market" yaml:"market"`
}

// Validate names the field that is wrong and its limits.
func (s Scenario) Validate() error {
	if s.Version != ScenarioVersion {
		return fmt.Errorf("version %d: this program reads version %d", s.Version, ScenarioVersion)
	}
	if err := s.Market.Validate(); err != nil {
		return fmt.Errorf("market: %w", err)
	}
	if err := adversary.Validate(s.Market.Adversaries); err != nil {
		return fmt.Errorf("market: %w", err)
	}
	return nil
}
