package protocol_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
)

func drawUnit(t *rapid.T) protocol.BundleUnit {
	u := protocol.BundleUnit{Cost: protocol.Credits(rapid.Int64Range(1, 1<<40).Draw(t, "cost"))}
	u.Slot.Cores = rapid.IntRange(0, 64).Draw(t, "cores")
	u.Slot.End = u.Slot.Start.Add(time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(t, "slot")))
	if rapid.Bool().Draw(t, "limited") {
		u.Tariff.TimeLimit = time.Duration(rapid.Int64Range(1, int64(50*time.Hour)).Draw(t, "limit"))
	}
	u.Tariff.P, u.Tariff.Q = drawRamp(t, "P"), drawRamp(t, "Q")
	u.Tariff.Least = protocol.Credits(rapid.Int64Range(0, int64(u.Cost/2)).Draw(t, "least"))
	return u
}

// anyUsage is what a meter may say, also one that is out of order.
func anyUsage(t *rapid.T) protocol.Usage {
	return protocol.Usage{
		CPU:   time.Duration(rapid.Int64Range(-5, 1<<62).Draw(t, "cpu")),
		Wall:  time.Duration(rapid.Int64Range(-5, int64(60*time.Hour)).Draw(t, "wall")),
		Share: rapid.Int64Range(-5, 100*core).Draw(t, "share"),
	}
}

// within is Within from its words, in fractions: the wall time is cut at the slot
// and the limit, the core time in the same proportion, and then at what the cores
// have in that time; a nanosecond of rounding down each.
func within(u protocol.BundleUnit, x protocol.Usage) (cpu, wall *big.Rat, share int64) {
	rat := func(n int64) *big.Rat { return big.NewRat(n, 1) }
	least := func(a, b *big.Rat) *big.Rat {
		if a.Cmp(b) < 0 {
			return a
		}
		return b
	}
	cores := int64(max(1, u.Slot.Cores))
	most := rat(int64(u.Slot.End.Sub(u.Slot.Start)))
	if u.Tariff.TimeLimit > 0 {
		most = least(most, rat(int64(u.Tariff.TimeLimit)))
	}
	cpu, wall = rat(max(0, int64(x.CPU))), rat(max(0, int64(x.Wall)))
	if wall.Cmp(most) > 0 {
		cpu.Mul(cpu, most).Quo(cpu, wall)
		wall = most
	}
	return least(cpu, new(big.Rat).Mul(wall, rat(cores))), wall, min(max(0, x.Share), cores*core)
}

func TestWithinIsWhatAUnitCanBeChargedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, x := drawUnit(t), anyUsage(t)
		got := u.Within(x)
		cpu, wall, share := within(u, x)
		off := new(big.Rat).Sub(cpu, big.NewRat(int64(got.CPU), 1))
		if off.Sign() < 0 || off.Cmp(big.NewRat(1, 1)) >= 0 || wall.Cmp(big.NewRat(int64(got.Wall), 1)) != 0 || got.Share != share {
			t.Fatalf("%+v of %+v became %+v, want %s, %s and %d", x, u.Slot, got, cpu.FloatString(3), wall.FloatString(3), share)
		}
		if again := u.Within(got); again != got {
			t.Fatalf("%+v became %+v, and then %+v", x, got, again)
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// The amount due for a unit follows the formula of the source, rounded once to a
// micro-credit, up to the ceiling; on completion it is all or nothing.
func TestAUnitsDueIsTheFormulaUpToItsCeiling(t *testing.T) {
	f := func(r protocol.Ramp, x *big.Rat) *big.Rat {
		lo, hi := big.NewRat(r.Lo, 1), big.NewRat(r.Hi, 1)
		switch {
		case x.Cmp(lo) <= 0:
			return new(big.Rat)
		case x.Cmp(hi) >= 0:
			return big.NewRat(int64(r.Top), 1)
		}
		part := new(big.Rat).Quo(new(big.Rat).Sub(x, lo), new(big.Rat).Sub(hi, lo))
		return part.Mul(part, big.NewRat(int64(r.Top), 1))
	}
	rapid.Check(t, func(t *rapid.T) {
		u := drawUnit(t)
		x := u.Within(anyUsage(t))
		want := new(big.Rat)
		if x.Wall > 0 {
			used, wall := big.NewRat(int64(x.CPU), int64(time.Hour)), big.NewRat(int64(x.Wall), int64(time.Hour))
			rate := new(big.Rat).Mul(big.NewRat(int64(x.CPU), int64(x.Wall)), big.NewRat(core, 1))
			want.Add(used.Mul(used, f(u.Tariff.P, rate)), wall.Mul(wall, f(u.Tariff.Q, big.NewRat(x.Share, 1))))
		}
		twice := new(big.Rat).Add(want, big.NewRat(1, 2)) // half away from zero: floor(x + 1/2)
		rounded := new(big.Int).Quo(twice.Num(), twice.Denom())
		if ceiling := big.NewInt(int64(u.Cost)); rounded.Cmp(ceiling) > 0 {
			rounded = ceiling
		}
		if got := u.Due(protocol.ModeMetered, false, x); big.NewInt(int64(got)).Cmp(rounded) != 0 {
			t.Fatalf("%+v at %+v: %s is due, want %s micro-credits", x, u.Tariff, got, rounded)
		}
		if least := big.NewInt(int64(u.Tariff.Least)); rounded.Cmp(least) < 0 {
			rounded = least
		}
		if got := u.Due(protocol.ModeMetered, true, x); big.NewInt(int64(got)).Cmp(rounded) != 0 {
			t.Fatalf("delivered, %+v at %+v: %s is due, want %s micro-credits", x, u.Tariff, got, rounded)
		}
		all, none := u.Due(protocol.ModeOnCompletion, true, x), u.Due(protocol.ModeOnCompletion, false, x)
		if all != u.Cost || none != 0 {
			t.Fatalf("on completion %s or %s of %s", all, none, u.Cost)
		}
	})
}

// A seller cannot claim anything but what is due, and less only if it says that the job
// failed.
func TestARecordClaimsWhatIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := drawUnit(t)
		x := u.Within(anyUsage(t))
		mode := rapid.SampledFrom([]protocol.Mode{protocol.ModeOnCompletion, protocol.ModeMetered}).Draw(t, "mode")
		all, less := u.Due(mode, true, x), u.Due(mode, false, x)
		due := rapid.SampledFrom([]protocol.Credits{all, less, all + 1, all - 1}).Draw(t, "due")
		if got, want := u.Owes(due, mode, true, x), due == all; got != want {
			t.Fatalf("%s of %s for a success: %t", due, all, got)
		}
		if got, want := u.Owes(due, mode, false, x), due == all || due == less; got != want {
			t.Fatalf("%s of %s or %s for a failure: %t", due, all, less, got)
		}
	})
}

// More than fits is more than the ceiling.
func TestADueThatOverflowsIsTheCeiling(t *testing.T) {
	u := protocol.BundleUnit{Cost: 7, Tariff: protocol.Tariff{P: protocol.Ramp{Top: protocol.MaxCredits}}}
	if got := u.Due(protocol.ModeMetered, true, protocol.Usage{CPU: 1 << 62, Wall: time.Hour}); got != 7 {
		t.Fatalf("%s is due", got)
	}
}
