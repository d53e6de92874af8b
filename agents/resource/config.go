package resource

import (
	"cmp"
	"fmt"
	"time"

	"ramp/agents/resource/federation"
	"ramp/agents/resource/forecast"
	"ramp/agents/resource/launch"
	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// Config describes a site's resource. A zero duration or limit means the default named beside it.
type Config struct {
	Credential *identity.Credential
	Trust      *identity.Trust // verifies what banks prove; nil only where no LocalHistory answers
	Properties protocol.Properties
	Price      pricing.Band // Rounds 0: pricing.DefaultRounds; no Rule: pricing.List
	Idle       int          // percent of a metered unit's ceiling that is due however idle its cores are, 1..MaxIdle; DefaultIdle
	Terms      []protocol.Terms
	Modes      []protocol.Mode // none: on-reservation

	Validity time.Duration // of an offer; protocol.OfferValidity
	Lead     time.Duration // from an offer to a slot that may move; auction.DefaultLead
	Horizon  time.Duration // how far ahead it sells; auction.DefaultHorizon
	Hold     time.Duration // longest hold of a vote; protocol.DefaultHold

	BuyerHolds       int   // units that one buyer may hold at once without buying; protocol.MaxUnits
	BuyerReserves    int   // of these, units that the batch system has not granted yet; DefaultReserves
	BuyerCoreSeconds int64 // that one buyer may hold without buying before it needs a voucher; defaultAllowance of the machine
	Cancellation     reserve.CancelPolicy

	// TrustJournal: the journal is known to be complete. Otherwise the Role asks the
	// banks at the start what they settled, and sells nothing until all have answered.
	TrustJournal bool
	// Offline: nobody can be reached. The Role sells nothing and waits for no bank.
	Offline bool

	// Learnt is a forecast from before the journal; nil: none. The Role copies it.
	Learnt *forecast.Forecast

	// Overbook: sell slots also over jobs that are expected to end before their
	// requested time. The batch system must be able to reserve such slots, list its
	// jobs, and drop a reservation whose cores are not free when it begins.
	Overbook       bool
	BrokenPerMille int // of the last promises; beyond it overbooking stops. DefaultBroken

	Heartbeat time.Duration // between presences; protocol.HeartbeatPeriod
	TTL       time.Duration // of a presence; protocol.PresenceTTL

	Launch launch.Config // programs in sold slots; its zero value: none

	Federation federation.Config // its part in a federation (003); no modules: none

	Read auction.Reader // reads buyers' documents; nil: auction.NewReader()
}

// defaultAllowance is how many seconds of the whole machine one buyer may hold for a minute without
// buying, once a day: enough for a few purchases that fail; of the next hour, one core in eight.
const defaultAllowance = 3600 / 8

// DefaultReserves bounds the reservations of one buyer that wait for the batch system
// at once. A slow batch system takes seconds for each, so one buyer could otherwise
// keep all others waiting until their holds end.
const DefaultReserves = 64

// MaxBroken is the largest BrokenPerMille.
const MaxBroken = 200

// DefaultIdle and MaxIdle are percentages of a ceiling. At the default, to block a machine for ten
// hours costs an hour of it; above half of the ceiling a contract would hardly be metered.
const (
	DefaultIdle = 10
	MaxIdle     = 50
)

func (c Config) filled() Config {
	fill(&c.Price.Rounds, pricing.DefaultRounds)
	fill(&c.Idle, DefaultIdle)
	fill(&c.Validity, protocol.OfferValidity)
	fill(&c.Lead, auction.DefaultLead)
	fill(&c.Horizon, auction.DefaultHorizon)
	fill(&c.Hold, protocol.DefaultHold)
	fill(&c.BuyerHolds, protocol.MaxUnits)
	fill(&c.BuyerReserves, DefaultReserves)
	fill(&c.BuyerCoreSeconds, int64(c.Properties.Cores)*defaultAllowance)
	fill(&c.BrokenPerMille, DefaultBroken)
	fill(&c.Heartbeat, protocol.HeartbeatPeriod)
	fill(&c.TTL, protocol.PresenceTTL)
	if len(c.Modes) == 0 {
		c.Modes = []protocol.Mode{protocol.ModeOnReservation}
	}
	return c
}

func fill[T int | int64 | time.Duration](field *T, value T) { *field = cmp.Or(*field, value) }

// Validate names the wrong field and the allowed values.
func (c Config) Validate() error {
	c = c.filled()
	if c.Credential == nil {
		return fmt.Errorf("resource: credential: missing")
	}
	if n := c.Properties.Cores; n < 1 || n > protocol.MaxCores {
		return fmt.Errorf("resource: cores %d: want 1..%d", n, protocol.MaxCores)
	}
	if err := c.Properties.Validate(); err != nil {
		return fmt.Errorf("resource: %w", err)
	}
	if err := c.Price.Validate(); err != nil {
		return fmt.Errorf("resource: %w", err)
	}
	if c.Idle < 1 || c.Idle > MaxIdle {
		return fmt.Errorf("resource: idle percent %d: want 1..%d", c.Idle, MaxIdle)
	}
	if n := c.BrokenPerMille; n < 1 || n > MaxBroken {
		return fmt.Errorf("resource: broken promises per mille %d: want 1..%d", n, MaxBroken)
	}
	for _, f := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"validity", c.Validity, time.Second, 24 * time.Hour},
		{"lead", c.Lead, time.Second, 24 * time.Hour},
		{"horizon", c.Horizon, time.Minute, 10 * auction.DefaultHorizon},
		{"heartbeat", c.Heartbeat, 100 * time.Millisecond, time.Hour},
		{"ttl", c.TTL, c.Heartbeat, protocol.MaxTTL},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("resource: %s %s: want %s..%s", f.name, f.value, f.least, f.most)
		}
	}
	if n := len(c.Terms); n > protocol.MaxTerms {
		return fmt.Errorf("resource: %d banks and currencies: want at most %d", n, protocol.MaxTerms)
	}
	if n := len(c.Modes); n > protocol.MaxModes {
		return fmt.Errorf("resource: %d modes: want at most %d", n, protocol.MaxModes)
	}
	if err := c.participant().Validate(); err != nil {
		return fmt.Errorf("resource: %w", err)
	}
	if err := c.Launch.Validate(); err != nil {
		return fmt.Errorf("resource: jobs: %w", err)
	}
	return nil
}

// seller is the part of the Config that auctions need.
func (c Config) seller() auction.SellerConfig {
	return auction.SellerConfig{
		Self: c.Credential.ID, Properties: c.Properties, Terms: c.Terms, Modes: c.Modes,
		Pricing: priced(c.Price), Idle: c.Idle, Validity: c.Validity, Lead: c.Lead, Horizon: c.Horizon,
		Read: c.Read, Serves: c.Launch.Policy.Serves,
	}
}

// participant is the part of the Config that commits need.
func (c Config) participant() reserve.ParticipantConfig {
	return reserve.ParticipantConfig{
		Self: c.Credential.ID, Terms: c.Terms, Modes: c.Modes, Notary: notary{c.Credential},
		Hold: c.Hold, BuyerHolds: c.BuyerHolds, BuyerReserves: c.BuyerReserves, BuyerCoreSeconds: c.BuyerCoreSeconds, Cancellation: c.Cancellation,
		TrustJournal: c.TrustJournal,
	}
}

// launches is the part of the Config that programs need.
func (c Config) launches() launch.Config {
	l := c.Launch
	l.Self = c.Credential.ID
	return l
}

// priced adapts a price band to auctions.
type priced pricing.Band

func (p priced) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	return pricing.Band(p).Ask(standing, pricing.Load{Busy: busy, Capacity: capacity})
}

func (p priced) Outbids() bool { return pricing.Band(p).Outbids() }

func (p priced) Limits() (start, least protocol.Credits) { return p.Start, p.Min }
