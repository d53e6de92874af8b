package protocol

import (
	"fmt"
	"math/big"
	"time"
)

// Rates are in micro-cores: a job that keeps one core busy uses cycles at a rate of
// Core, and half a core's share is Core / 2.
const (
	Core        = 1_000_000
	MaxRate     = MaxCores * Core
	MaxTimeRuns = 10 * 365 * 24 * time.Hour // of one contract
)

// Ramp is a price as a function of a rate: zero up to Lo, rising linearly from Lo
// to Hi, Top from Hi on. Lo = Hi is a step (001 "Price Functions").
type Ramp struct {
	Lo  int64   `json:"lo"`  // micro-cores, 0..MaxRate
	Hi  int64   `json:"hi"`  // micro-cores, Lo..MaxRate
	Top Credits `json:"top"` // zero or more
}

// Tariff is a metered contract: the cost of a stretch of running depends on the
// cycles it used and the share it was given (001).
type Tariff struct {
	TimeLimit time.Duration `json:"time_limit"` // wall time; the server may end the job after it
	P         Ramp          `json:"p"`          // credits per core-hour used, by the rate of use
	Q         Ramp          `json:"q"`          // credits per hour of wall time, by the least share
	Prepay    Credits       `json:"prepay"`     // zero: no prepayment
	// Least is due for the slot however little of it is used, since nobody else could
	// have it: zero to half of the ceiling. Due does not count it.
	Least Credits `json:"least,omitempty"`
}

// Usage is a meter's reading for one stretch of running, from start or resumption to
// end, crash, suspension or kill.
type Usage struct {
	CPU   time.Duration `json:"cpu"`   // core time used: U
	Wall  time.Duration `json:"wall"`  // wall time: T
	Share int64         `json:"share"` // least share available, in micro-cores: S
}

// Validate reports why a new tariff must be refused.
func (t Tariff) Validate() error {
	if t.TimeLimit <= 0 || t.TimeLimit > MaxTimeRuns {
		return fmt.Errorf("time limit %s: want more than zero and at most %s", t.TimeLimit, MaxTimeRuns)
	}
	if t.Prepay < 0 {
		return fmt.Errorf("prepayment %s: want zero or more", t.Prepay)
	}
	if t.Least < 0 {
		return fmt.Errorf("least payment %s: want zero or more", t.Least)
	}
	if err := t.P.validate(); err != nil {
		return fmt.Errorf("price of cycles P: %w", err)
	}
	if err := t.Q.validate(); err != nil {
		return fmt.Errorf("price of shares Q: %w", err)
	}
	return nil
}

func (r Ramp) validate() error {
	switch {
	case r.Lo < 0 || r.Hi > MaxRate:
		return fmt.Errorf("rates %s..%s: want cores in 0..%d", cores(r.Lo), cores(r.Hi), int64(MaxCores))
	case r.Lo > r.Hi:
		return fmt.Errorf("the minimum rate of %s cores is above the maximum of %s", cores(r.Lo), cores(r.Hi))
	case r.Top < 0:
		return fmt.Errorf("maximum price %s: want zero or more", r.Top)
	}
	return nil
}

// cores writes a rate in cores, like documents.
func cores(rate int64) string { return Credits(rate).String() } // both count in millionths

// Validate reports an impossible usage.
func (u Usage) Validate() error {
	if u.CPU < 0 || u.Wall < 0 || u.Share < 0 || u.Share > MaxRate {
		return fmt.Errorf("usage of %s in %s at a share of %d: want zero or more, and a share of at most %d", u.CPU, u.Wall, u.Share, int64(MaxRate))
	}
	return nil
}

// Due is the cost of a stretch, U·P(U/T) + T·Q(S), rounded once, half away from
// zero, to a micro-credit. T = 0 costs nothing. Tariff and usage must be valid.
func (t Tariff) Due(u Usage) (Credits, error) {
	if u.Wall == 0 {
		return 0, nil
	}
	rate := new(big.Rat).SetFrac(bigProduct(int64(u.CPU), Core), big.NewInt(int64(u.Wall)))
	due := t.P.at(rate)
	due.Mul(due, new(big.Rat).SetInt64(int64(u.CPU)))
	share := t.Q.at(new(big.Rat).SetInt64(u.Share))
	due.Add(due, share.Mul(share, new(big.Rat).SetInt64(int64(u.Wall))))
	due.Quo(due, new(big.Rat).SetInt64(int64(time.Hour)))
	return roundCredits(due)
}

// at is the price at a rate in micro-cores.
func (r Ramp) at(x *big.Rat) *big.Rat {
	lo, top := new(big.Rat).SetInt64(r.Lo), new(big.Rat).SetInt64(int64(r.Top))
	switch {
	case x.Cmp(lo) <= 0:
		return new(big.Rat)
	case x.Cmp(new(big.Rat).SetInt64(r.Hi)) >= 0:
		return top
	}
	top.Mul(top, lo.Sub(x, lo))
	return top.Quo(top, new(big.Rat).SetInt64(r.Hi-r.Lo))
}

// Full is the price of a core-hour when a job uses n cores throughout, alone:
// P(n) + Q(n) / n, rounded up to a micro-credit, at most MaxCredits. Cores are
// 1..MaxCores, and the tariff is valid.
func (t Tariff) Full(cores int) Credits {
	n := new(big.Rat).SetInt64(int64(cores))
	rate := new(big.Rat).SetInt64(int64(cores) * Core)
	sum := t.Q.at(rate)
	sum.Quo(sum, n).Add(sum, t.P.at(rate))
	up := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	if up.Quo(up, sum.Denom()); !up.IsInt64() || up.Int64() > int64(MaxCredits) {
		return MaxCredits
	}
	return Credits(up.Int64())
}

// Possible reports whether that many cores are enough to keep the tariff's promise (Kept).
func (t Tariff) Possible(cores int) bool {
	most := int64(cores) * Core
	if t.Q.Top > 0 {
		return t.Q.Lo <= most
	}
	return t.P.Lo <= most
}

func bigProduct(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// roundCredits rounds an amount of zero or more half away from zero.
func roundCredits(x *big.Rat) (Credits, error) {
	twice := new(big.Int).Lsh(x.Num(), 1)
	n := twice.Add(twice, x.Denom())
	n.Quo(n, new(big.Int).Lsh(x.Denom(), 1))
	if !n.IsInt64() {
		return 0, ErrOverflow
	}
	return Credits(n.Int64()), nil
}

// Prepaid splits a prepayment into the part kept for the due amount and the part
// that goes back. The client never pays more than it prepaid.
func Prepaid(paid, due Credits) (kept, back Credits) {
	kept = min(max(due, 0), paid)
	return kept, paid - kept
}

// Kept reports whether the server has kept its promise so far. With a price of
// shares, the least share never fell below Smin. Without one, an always-ready job got
// at least rmin since its start, which is not checked during the grace time.
func (t Tariff) Kept(u Usage, grace time.Duration) bool {
	if t.Q.Top > 0 {
		return u.Share >= t.Q.Lo
	}
	return u.Wall <= grace || bigProduct(int64(u.CPU), Core).Cmp(bigProduct(t.P.Lo, int64(u.Wall))) >= 0
}

// MayStop reports whether the server may suspend or kill the job of its own
// accord: its time is over, or its prepayment is used up.
func (t Tariff) MayStop(u Usage) bool {
	if u.Wall >= t.TimeLimit {
		return true
	}
	due, err := t.Due(u)
	return t.Prepay > 0 && (err != nil || due >= t.Prepay)
}
