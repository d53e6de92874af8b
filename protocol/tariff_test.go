package protocol_test

import (
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
)

const core = protocol.Core

func tariff() protocol.Tariff {
	return protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Lo: core / 2, Hi: 3 * core / 2, Top: 10 * protocol.Credit}}
}

func TestWhatIsDue(t *testing.T) {
	interactive := protocol.Tariff{TimeLimit: time.Hour, Q: protocol.Ramp{Lo: core, Hi: 2 * core, Top: 6 * protocol.Credit}}
	step := protocol.Tariff{TimeLimit: time.Hour, P: protocol.Ramp{Lo: core, Hi: core, Top: 4 * protocol.Credit}}
	both := tariff()
	both.Q = interactive.Q
	for _, tc := range []struct {
		name   string
		tariff protocol.Tariff
		usage  protocol.Usage
		want   string
	}{
		{"no time costs nothing", tariff(), protocol.Usage{CPU: time.Hour}, "0"},
		{"nothing used costs nothing", tariff(), protocol.Usage{Wall: time.Hour}, "0"},
		{"below the least rate it is worthless", tariff(), protocol.Usage{CPU: 29 * time.Minute, Wall: time.Hour}, "0"},
		{"at the least rate as well", tariff(), protocol.Usage{CPU: 30 * time.Minute, Wall: time.Hour}, "0"},
		{"half way up the ramp", tariff(), protocol.Usage{CPU: time.Hour, Wall: time.Hour}, "5"},
		{"at the greatest rate", tariff(), protocol.Usage{CPU: 90 * time.Minute, Wall: time.Hour}, "15"},
		{"beyond it the price stays", tariff(), protocol.Usage{CPU: 3 * time.Hour, Wall: time.Hour}, "30"},
		{"an idle interactive job pays for its share", interactive, protocol.Usage{Wall: 2 * time.Hour, Share: 3 * core / 2}, "6"},
		{"a share at Smin costs nothing", interactive, protocol.Usage{Wall: 2 * time.Hour, Share: core}, "0"},
		{"both are added", both, protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: 2 * core}, "11"},
		{"a step: at it nothing", step, protocol.Usage{CPU: time.Hour, Wall: time.Hour}, "0"},
		{"a step: beyond it all", step, protocol.Usage{CPU: time.Hour + 1, Wall: time.Hour}, "4"},
	} {
		if got, err := tc.tariff.Due(tc.usage); err != nil || got.String() != tc.want {
			t.Errorf("%s: %s, %v, want %s", tc.name, got, err, tc.want)
		}
	}
}

func drawRamp(t *rapid.T, name string) protocol.Ramp {
	lo := rapid.Int64Range(0, 8*core).Draw(t, name+" lo")
	return protocol.Ramp{Lo: lo, Hi: rapid.Int64Range(lo, 8*core).Draw(t, name+" hi"), Top: protocol.Credits(rapid.Int64Range(0, 1<<40).Draw(t, name+" top"))}
}

func drawUsage(t *rapid.T) protocol.Usage {
	return protocol.Usage{
		CPU:  time.Duration(rapid.Int64Range(0, int64(8*24*time.Hour)).Draw(t, "cpu")),
		Wall: time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "wall")), Share: rapid.Int64Range(0, 9*core).Draw(t, "share"),
	}
}

// The formula of the source, in floats of 300 bits.
func TestDueIsTheFormulaRoundedOnce(t *testing.T) {
	float := func(n int64) *big.Float { return new(big.Float).SetPrec(300).SetInt64(n) }
	f := func(r protocol.Ramp, x *big.Float) *big.Float {
		switch {
		case x.Cmp(float(r.Lo)) <= 0:
			return float(0)
		case x.Cmp(float(r.Hi)) >= 0:
			return float(int64(r.Top))
		}
		up := new(big.Float).Quo(new(big.Float).Sub(x, float(r.Lo)), float(r.Hi-r.Lo))
		return up.Mul(up, float(int64(r.Top)))
	}
	rapid.Check(t, func(t *rapid.T) {
		tf := protocol.Tariff{TimeLimit: time.Hour, P: drawRamp(t, "P"), Q: drawRamp(t, "Q")}
		u := drawUsage(t)
		rate := new(big.Float).Quo(new(big.Float).Mul(float(int64(u.CPU)), float(core)), float(int64(u.Wall)))
		want := new(big.Float).Mul(float(int64(u.CPU)), f(tf.P, rate))
		want.Add(want, new(big.Float).Mul(float(int64(u.Wall)), f(tf.Q, float(u.Share))))
		want.Quo(want, float(int64(time.Hour)))
		got, err := tf.Due(u)
		if d := want.Sub(want, float(int64(got))); err != nil || d.Cmp(big.NewFloat(-0.5000001)) < 0 || d.Cmp(big.NewFloat(0.5000001)) > 0 {
			t.Fatalf("due %s, %v: off by %s micro-credits", got, err, d.Text('f', 9))
		}
	})
}

// More cycles in the same time, or a greater share, never cost less (001).
func TestDueDoesNotFallWithTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tf := protocol.Tariff{TimeLimit: time.Hour, P: drawRamp(t, "P"), Q: drawRamp(t, "Q")}
		u, v := drawUsage(t), drawUsage(t)
		v.Wall, v.CPU, v.Share = u.Wall, max(u.CPU, v.CPU), max(u.Share, v.Share)
		less, err1 := tf.Due(u)
		more, err2 := tf.Due(v)
		if err1 != nil || err2 != nil || more < less {
			t.Fatalf("%+v costs %s, %+v costs %s", u, less, v, more)
		}
	})
}

func TestATariffIsRefusedWhenMade(t *testing.T) {
	for word, change := range map[string]func(t *protocol.Tariff){
		"time limit":          func(t *protocol.Tariff) { t.TimeLimit = 0 },
		"prepayment":          func(t *protocol.Tariff) { t.Prepay = -1 },
		"P: the minimum rate": func(t *protocol.Tariff) { t.P.Lo = t.P.Hi + 1 },
		"Q: the minimum rate": func(t *protocol.Tariff) { t.Q.Lo = 1 },
		"P: maximum price":    func(t *protocol.Tariff) { t.P.Top = -1 },
		"Q: maximum price":    func(t *protocol.Tariff) { t.Q.Top = -1 },
		"P: rates":            func(t *protocol.Tariff) { t.P.Lo = -1 },
		"Q: rates":            func(t *protocol.Tariff) { t.Q.Hi = protocol.MaxRate + 1 },
	} {
		tf := tariff()
		change(&tf)
		field, rest, _ := strings.Cut(word, ": ")
		if err := tf.Validate(); err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), rest) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := tariff().Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsPrepaidIsTheMost(t *testing.T) {
	for _, tc := range [][4]protocol.Credits{{10, 4, 4, 6}, {10, 10, 10, 0}, {10, 11, 10, 0}, {10, 0, 0, 10}, {0, 5, 0, 0}} {
		if kept, back := protocol.Prepaid(tc[0], tc[1]); kept != tc[2] || back != tc[3] {
			t.Errorf("prepaid %d, due %d: kept %d, back %d", tc[0], tc[1], kept, back)
		}
	}
}

func TestPromisesAndStops(t *testing.T) {
	cpu := tariff()
	share := protocol.Tariff{TimeLimit: time.Hour, Q: protocol.Ramp{Lo: core, Hi: core, Top: 1}}
	for _, tc := range []struct {
		name   string
		tariff protocol.Tariff
		usage  protocol.Usage
		want   bool
	}{
		{"half a core is the promise", cpu, protocol.Usage{CPU: 30 * time.Minute, Wall: time.Hour}, true},
		{"less is not", cpu, protocol.Usage{CPU: 30*time.Minute - 1, Wall: time.Hour}, false},
		{"at first less is allowed", cpu, protocol.Usage{Wall: time.Minute}, true},
		{"a share is the promise", share, protocol.Usage{Wall: time.Hour, Share: core}, true},
		{"a smaller share is not", share, protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: core - 1}, false},
	} {
		if got := tc.tariff.Kept(tc.usage, time.Minute); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
	}
	prepaid := cpu
	prepaid.Prepay = 5 * protocol.Credit
	for name, stop := range map[string]bool{
		"its time is over": cpu.MayStop(protocol.Usage{Wall: time.Hour}), "it may run on": !cpu.MayStop(protocol.Usage{CPU: time.Hour, Wall: time.Hour - 1}),
		"the prepayment is used up": prepaid.MayStop(protocol.Usage{CPU: 59 * time.Minute, Wall: 58 * time.Minute}),
		"not yet":                   !prepaid.MayStop(protocol.Usage{CPU: 50 * time.Minute, Wall: 50 * time.Minute}),
	} {
		if !stop {
			t.Error(name)
		}
	}
}

func TestWhatIsSaidOfAGuarantee(t *testing.T) {
	rate := protocol.Tariff{P: protocol.Ramp{Lo: core / 2, Hi: core, Top: 1}}
	share := protocol.Tariff{P: rate.P, Q: protocol.Ramp{Lo: 4 * core, Hi: 8 * core, Top: 1}}
	free := protocol.Tariff{P: protocol.Ramp{Hi: core, Top: 1}}
	for _, tc := range []struct {
		name   string
		tariff protocol.Tariff
		usage  protocol.Usage
		want   *protocol.Guarantee
		missed int64
	}{
		{"a rate that was kept", rate, protocol.Usage{CPU: time.Hour, Wall: time.Hour}, &protocol.Guarantee{Of: "rate", Promised: core / 2, Had: core, Kept: true}, 0},
		{"one that was not, by a fifth of a core", rate, protocol.Usage{CPU: 18 * time.Minute, Wall: time.Hour}, &protocol.Guarantee{Of: "rate", Promised: core / 2, Had: 3 * core / 10}, core / 5},
		{"a moment more than kept is rounded down", rate, protocol.Usage{CPU: 30*time.Minute + 1, Wall: time.Hour}, &protocol.Guarantee{Of: "rate", Promised: core / 2, Had: core / 2, Kept: true}, 0},
		{"the first seconds are no sign", rate, protocol.Usage{Wall: protocol.GuaranteeGrace}, &protocol.Guarantee{Of: "rate", Promised: core / 2, Kept: true}, 0},
		{"a second more is", rate, protocol.Usage{Wall: protocol.GuaranteeGrace + time.Second}, &protocol.Guarantee{Of: "rate", Promised: core / 2}, core / 2},
		{"a share that was kept, and a rate that is no duty then", share, protocol.Usage{Wall: time.Hour, Share: 4 * core}, &protocol.Guarantee{Of: "share", Promised: 4 * core, Had: 4 * core, Kept: true}, 0},
		{"a share that was not, by a core and from the first second", share, protocol.Usage{CPU: time.Second, Wall: time.Second, Share: 3 * core}, &protocol.Guarantee{Of: "share", Promised: 4 * core, Had: 3 * core}, core},
		{"nothing is promised", free, protocol.Usage{Wall: time.Hour}, nil, 0},
		{"nothing ran", share, protocol.Usage{}, nil, 0},
		{"more than there can be", rate, protocol.Usage{CPU: 1 << 62, Wall: 1}, &protocol.Guarantee{Of: "rate", Promised: core / 2, Had: protocol.MaxRate, Kept: true}, 0},
	} {
		got := tc.tariff.Guarantee(tc.usage)
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
			continue
		}
		if got != nil && got.Missed() != tc.missed {
			t.Errorf("%s: missed by %d, want %d", tc.name, got.Missed(), tc.missed)
		}
	}
}

// Where a share is missed nothing is due for it, and so with a rate.
func TestABrokenGuaranteeCostsNothing(t *testing.T) {
	rate := protocol.Tariff{P: protocol.Ramp{Lo: core / 2, Hi: core, Top: protocol.Credit}}
	share := protocol.Tariff{Q: protocol.Ramp{Lo: core, Hi: 2 * core, Top: protocol.Credit}}
	for name, x := range map[string]struct {
		t protocol.Tariff
		u protocol.Usage
	}{
		"rate":  {rate, protocol.Usage{CPU: 20 * time.Minute, Wall: time.Hour, Share: core}},
		"share": {share, protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: core - 1}},
	} {
		if g := x.t.Guarantee(x.u); g == nil || g.Kept {
			t.Errorf("%s: the guarantee is %+v", name, g)
		}
		if due, err := x.t.Due(x.u); err != nil || due != 0 {
			t.Errorf("%s: %s is due, %v", name, due, err)
		}
	}
}
