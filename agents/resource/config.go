package resource

import (
	"fmt"
	"time"

	"ramp/agents/resource/forecast"
	"ramp/agents/resource/launch"
	"ramp/agents/resource/pricing"
	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// Config is what a site says about its resource. A zero duration or limit means
// the default that is named beside it.
type Config struct {
	Credential *identity.Credential
	Properties protocol.Properties
	Price      pricing.Band // Rounds 0: pricing.DefaultRounds
	Terms      []protocol.Terms
	Modes      []protocol.Mode // none: on-reservation

	Validity time.Duration // of an offer; protocol.OfferValidity
	Lead     time.Duration // from an offer to a slot that may move; auction.DefaultLead
	Horizon  time.Duration // how far ahead it sells; auction.DefaultHorizon
	Hold     time.Duration // longest hold of a vote; protocol.DefaultHold

	BuyerHolds       int   // units one buyer may hold and not buy at once; protocol.MaxUnits
	BuyerReserves    int   // of them, those that the batch system has not granted yet; DefaultReserves
	BuyerCoreSeconds int64 // and the core-seconds per hour; a week of the machine
	Cancellation     reserve.CancelPolicy

	// TrustJournal: the journal is known to be complete. Otherwise the banks are asked
	// at the start what they settled, and nothing is sold until all have answered.
	TrustJournal bool
	// Offline: nobody can be reached, so nothing is sold, and the banks are not waited
	// for to tell how things stand.
	Offline bool

	// Learnt is what is known of the machine's waits before the journal knows any;
	// nil: nothing. It is not changed.
	Learnt *forecast.Forecast

	// Sharpen: slots are also sold over jobs that are expected to end before their
	// requested time. Only for a batch system that reserves such slots, tells its jobs,
	// and gives up a reservation whose cores are not free when it begins.
	Sharpen        bool
	BrokenPerMille int // of its last promises; beyond it that stops. DefaultBroken

	Heartbeat time.Duration // between presences; protocol.HeartbeatPeriod
	TTL       time.Duration // of a presence; protocol.PresenceTTL

	Launch launch.Config // what may run in what is sold; its zero value: nothing

	Read auction.Reader // reads buyers' documents; auction.Read
}

// defaultWeek is how much of the machine one buyer may hold per hour and not
// buy: room for a few large requests that fail, none for keeping it shut.
const defaultWeek = 7 * 24 * 3600

// DefaultReserves is how many reservations of one buyer the batch system may be
// asked for at once. A serial one takes seconds for each: beyond this, one buyer
// would keep all others waiting until their holds are over.
const DefaultReserves = 64

// MaxBroken is the most of a thousand promises that a site may allow itself to break.
const MaxBroken = 200

// filled is the Config with its defaults.
func (c Config) filled() Config {
	fill(&c.Price.Rounds, pricing.DefaultRounds)
	fill(&c.Validity, protocol.OfferValidity)
	fill(&c.Lead, auction.DefaultLead)
	fill(&c.Horizon, auction.DefaultHorizon)
	fill(&c.Hold, protocol.DefaultHold)
	fill(&c.BuyerHolds, protocol.MaxUnits)
	fill(&c.BuyerReserves, DefaultReserves)
	fill(&c.BuyerCoreSeconds, int64(c.Properties.Cores)*defaultWeek)
	fill(&c.BrokenPerMille, DefaultBroken)
	fill(&c.Heartbeat, protocol.HeartbeatPeriod)
	fill(&c.TTL, protocol.PresenceTTL)
	if len(c.Modes) == 0 {
		c.Modes = []protocol.Mode{protocol.ModeOnReservation}
	}
	return c
}

func fill[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate names the field that is wrong and what is allowed.
func (c Config) Validate() error {
	c = c.filled()
	if c.Credential == nil {
		return fmt.Errorf("resource: credential: want one")
	}
	if n := c.Properties.Cores; n < 1 || n > protocol.MaxCores {
		return fmt.Errorf("resource: cores %d: want 1..%d", n, protocol.MaxCores)
	}
	if err := c.Price.Validate(); err != nil {
		return fmt.Errorf("resource: %w", err)
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
	if len(c.Terms) > protocol.MaxTerms || len(c.Modes) > protocol.MaxModes {
		return fmt.Errorf("resource: %d terms and %d modes: want at most %d and %d", len(c.Terms), len(c.Modes), protocol.MaxTerms, protocol.MaxModes)
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
		Pricing: priced(c.Price), Validity: c.Validity, Lead: c.Lead, Horizon: c.Horizon,
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

// priced is a price band as auctions ask it.
type priced pricing.Band

func (p priced) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	return pricing.Band(p).Ask(standing, pricing.Load{Busy: busy, Capacity: capacity})
}

func (p priced) Limits() (start, least protocol.Credits) { return p.Start, p.Min }
