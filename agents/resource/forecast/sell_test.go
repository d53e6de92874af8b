package forecast_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
)

// machine is a log of ten cores: first lessons of jobs that run a tenth of what they
// ask for, then one that holds all cores for an hour at most.
func machine(run int32) *workload.Log {
	l := &workload.Log{Comments: []string{" MaxProcs: 10"}}
	for i := range int64(100) {
		j := job(i*100, 0, 10, 10)
		j.RequestedTime = 100
		l.Jobs = append(l.Jobs, j)
	}
	j := job(20_000, 0, run, 10)
	j.RequestedTime = 3600
	l.Jobs = append(l.Jobs, j)
	return l
}

// lessons are asks that only let the site look: of more cores than there are.
func lessons(last ...forecast.Ask) []forecast.Ask {
	return append([]forecast.Ask{{At: 15_000, Start: 15_000, Wall: 1, Cores: 11}}, last...)
}

func sell(t *testing.T, l *workload.Log, v forecast.View, asks ...forecast.Ask) forecast.Sales {
	t.Helper()
	s, err := forecast.Sell(l, lessons(asks...), v)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheSharpenedViewSellsWhatUsersWillNotNeed(t *testing.T) {
	ask := forecast.Ask{At: 20_010, Start: 21_000, Wall: 600, Cores: 5}
	if got := sell(t, machine(360), forecast.WallTime{}, ask); got.Sold != 0 {
		t.Errorf("wall time: %+v", got)
	}
	if got := sell(t, machine(360), forecast.UsualView(), ask); got.Sold != 1 || got.Broken != 0 || got.CoreSeconds != 3000 {
		t.Errorf("sharpened: %+v", got)
	}
}

func TestAPromiseIsBrokenIfTheJobRunsOn(t *testing.T) {
	asks := []forecast.Ask{
		{At: 20_010, Start: 21_000, Wall: 600, Cores: 5},
		{At: 20_020, Start: 21_000, Wall: 600, Cores: 5},
		{At: 21_100, Start: 25_000, Wall: 600, Cores: 5},
	}
	got := sell(t, machine(3000), forecast.UsualView(), asks...)
	if got.Sold != 3 || got.Broken != 2 || got.CoreSeconds != 3000 {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsBrokenIsGivenBack(t *testing.T) {
	asks := []forecast.Ask{
		{At: 20_010, Start: 21_000, Wall: 9000, Cores: 10}, // broken: the job runs until 23,000
		{At: 23_500, Start: 24_000, Wall: 600, Cores: 10},
	}
	if got := sell(t, machine(3000), forecast.UsualView(), asks...); got.Sold != 2 || got.Broken != 1 || got.CoreSeconds != 6000 {
		t.Errorf("%+v", got)
	}
}

func TestOfSeveralSlotsTheLastSoldIsBroken(t *testing.T) {
	l := machine(3000)
	l.Jobs[len(l.Jobs)-1].Procs = 6
	asks := []forecast.Ask{
		{At: 20_010, Start: 21_000, Wall: 600, Cores: 4}, // beside the job
		{At: 20_020, Start: 20_900, Wall: 600, Cores: 2}, // begins first, and the other one finds it there
	}
	got := sell(t, l, forecast.UsualView(), asks...)
	if got.Sold != 2 || got.Broken != 1 || got.CoreSeconds != 2400 {
		t.Errorf("%+v", got)
	}
}

func TestWallTimePromisesAreKept(t *testing.T) {
	l := synthetic(t, 7, 10, .9)
	c, err := forecast.Compare(l, 500, forecast.UsualView(), rand.New(rand.NewPCG(1, 1)).Int64N)
	if err != nil {
		t.Fatal(err)
	}
	if c.WallTime.Broken != 0 || c.WallTime.Sold == 0 {
		t.Errorf("wall time: %+v", c.WallTime)
	}
}

// What the comparison is for: more slots at one broken promise in a hundred.
func TestMoreSlotsAtTheSameRateOfBrokenPromises(t *testing.T) {
	c, err := forecast.Compare(synthetic(t, 5, 30, .95), 1500, forecast.UsualView(), rand.New(rand.NewPCG(1, 1)).Int64N)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	if c.Sharpened.Sold <= c.WallTime.Sold || c.Sharpened.BrokenRate() > .01 || c.WallTime.Asked != 1500 {
		t.Errorf("%+v", c)
	}
}

func TestTheSameAsksMakeTheSameSales(t *testing.T) {
	var last forecast.Comparison
	for i := range 2 {
		c, err := forecast.Compare(synthetic(t, 5, 5, .9), 200, forecast.UsualView(), rand.New(rand.NewPCG(1, 1)).Int64N)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(last, c); i > 0 && d != "" {
			t.Error(d)
		}
		last = c
	}
}

func TestAsksThatMakeNoSenseAreRefused(t *testing.T) {
	good := forecast.Ask{At: 5, Start: 5, Wall: 1, Cores: 1}
	for name, asks := range map[string][]forecast.Ask{
		"a start before the ask": {{At: 5, Start: 4, Wall: 1, Cores: 1}},
		"no time":                {{At: 5, Start: 5, Cores: 1}},
		"no cores":               {{At: 5, Start: 5, Wall: 1}},
		"longer than for ever":   {{At: 5, Start: 5, Wall: workload.Forever, Cores: 1}},
		"out of order":           {{At: 6, Start: 6, Wall: 1, Cores: 1}, good},
		"too many":               make([]forecast.Ask, forecast.MaxAsks+1),
	} {
		if _, err := forecast.Sell(machine(1), asks, forecast.WallTime{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s, err := forecast.Sell(&workload.Log{}, []forecast.Ask{good}, forecast.WallTime{}); err != nil || s.Sold != 0 || s.Asked != 1 {
		t.Errorf("an empty log: %+v %v", s, err)
	}
}
