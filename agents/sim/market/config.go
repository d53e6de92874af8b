package market

import (
	"fmt"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of a simulated market.
const (
	MaxResources = 100_000
	MaxUsers     = 100_000
	MaxLength    = 366 * 24 * time.Hour
	MaxRate      = 3600 // auctions per hour and user
	MaxUnits     = 25   // of one order
)

// Settling is how long a market runs on after its faults have stopped. Within it every
// auction must end and every bundle must be decided. It is the longest way to a decision:
// MaxSettleAhead, the grace period of a restarted bank, and the longest back-off of a
// seller in doubt, each with the largest clock error.
const Settling = 3 * time.Hour

// Config describes a market.
type Config struct {
	Seed      uint64        `json:"seed" yaml:"seed"`
	Resources int           `json:"resources" yaml:"resources"`
	Users     int           `json:"users" yaml:"users"`
	Length    time.Duration `json:"length" yaml:"length"`       // of the period with faults
	Rate      float64       `json:"rate" yaml:"rate"`           // auctions per hour and user
	Heartbeat time.Duration `json:"heartbeat" yaml:"heartbeat"` // between presences
	Units     int           `json:"units" yaml:"units"`         // most units of an order
	Faults    sim.Faults    `json:"faults" yaml:"faults"`
	// Adversaries counts the dishonest parties of each kind.
	Adversaries map[string]int `json:"adversaries,omitempty" yaml:"adversaries,omitempty"`
	// Modes are the settlement modes from which orders choose at random. If empty, all
	// orders are paid on reservation.
	Modes []protocol.Mode `json:"modes,omitempty" yaml:"modes,omitempty"`
	// Launches is how many of a thousand orders run a program in what they buy. Orders in a
	// mode that is paid later never do.
	Launches int `json:"launches,omitempty" yaml:"launches,omitempty"`
	// Exchanges is how often an hour each user exchanges money. If above zero, the bank has a
	// second currency.
	Exchanges float64 `json:"exchanges,omitempty" yaml:"exchanges,omitempty"`
	// Sweeps is how often an hour each user orders a sweep.
	Sweeps float64 `json:"sweeps,omitempty" yaml:"sweeps,omitempty"`
	// Machines are the sites, with posted prices; nil: they are drawn.
	Machines []Machine `json:"-" yaml:"-"`
	// Overbook has sellers overbook: they sell cores of local jobs that they expect to end early.
	Overbook bool `json:"sharpen,omitempty" yaml:"sharpen,omitempty"`
	// Barter makes the bank barter between groups of users and sites.
	Barter bool `json:"barter,omitempty" yaml:"barter,omitempty"`
	// Restore has the bank restored from a backup when the faults have stopped.
	Restore bool `json:"restore,omitempty" yaml:"restore,omitempty"`
}

// Machine is a site of a market that is not drawn.
type Machine struct {
	Cores int
	Price protocol.Credits // per core-hour
	Jobs  Behavior         // of its buyers
}

// Behavior decides how long a job runs, and how it exits; false: it is left to the batch system.
type Behavior func(now time.Time, job message.Job) (length time.Duration, exit int, ok bool)

// Default is a small market that lasts a day.
func Default() Config {
	return Config{
		Seed: 1, Resources: 20, Users: 5, Length: 24 * time.Hour, Rate: 1, Heartbeat: time.Minute, Units: 3,
		Faults: sim.Levels()["none"],
	}
}

// Validate names the field that is wrong and its limits.
func (c Config) Validate() error {
	switch {
	case c.Resources < 1 || c.Resources > MaxResources:
		return fmt.Errorf("resources %d: want 1..%d", c.Resources, MaxResources)
	case c.Machines != nil && len(c.Machines) != c.Resources:
		return fmt.Errorf("machines %d: want one for each of %d resources", len(c.Machines), c.Resources)
	case c.Users < 1 || c.Users > MaxUsers:
		return fmt.Errorf("users %d: want 1..%d", c.Users, MaxUsers)
	case c.Length <= 0 || c.Length > MaxLength:
		return fmt.Errorf("length %s: want more than zero, at most %s", c.Length, MaxLength)
	case !(c.Rate >= 0 && c.Rate <= MaxRate):
		return fmt.Errorf("rate %g: want 0..%d auctions per hour and user", c.Rate, MaxRate)
	case c.Heartbeat < time.Second || c.Heartbeat > 20*time.Minute:
		return fmt.Errorf("heartbeat %s: want 1s..20m", c.Heartbeat)
	case c.Launches < 0 || c.Launches > 1000:
		return fmt.Errorf("launches %d: want 0..1000 orders of a thousand", c.Launches)
	case !(c.Exchanges >= 0 && c.Exchanges <= MaxRate) || c.Exchanges > 0 && c.Barter:
		return fmt.Errorf("exchanges %g: want 0..%d per hour and user, and none with barter", c.Exchanges, MaxRate)
	case !(c.Sweeps >= 0 && c.Sweeps <= MaxRate) || c.Sweeps > 0 && c.Barter:
		return fmt.Errorf("sweeps %g: want 0..%d per hour and user, and none with barter", c.Sweeps, MaxRate)
	case c.Units < 1 || c.Units > MaxUnits:
		return fmt.Errorf("units %d: want 1..%d", c.Units, MaxUnits)
	}
	for _, kind := range sorted(c.Adversaries) {
		if n := c.Adversaries[kind]; n < 0 || n > MaxAdversaries {
			return fmt.Errorf("adversaries %s %d: want 0..%d", kind, n, MaxAdversaries)
		}
	}
	if err := c.validateModes(); err != nil {
		return err
	}
	if err := c.Faults.Validate(); err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	return nil
}
