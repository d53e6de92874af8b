package forecast_test

import (
	"testing"

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

// sellTo sells to the asks after one for too many cores, which lets the site learn.
func sellTo(l *workload.Log, v view, asks ...ask) sales {
	return sell(l, append([]ask{{At: 15_000, Start: 15_000, Wall: 1, Cores: 11}}, asks...), v)
}

func usual() view { return optimistic{forecast.UsualView()} }

func TestOptimisticViewSellsTheTimeThatJobsDoNotNeed(t *testing.T) {
	ask := ask{At: 20_010, Start: 21_000, Wall: 600, Cores: 5}
	if got := sellTo(machine(360), wallTime{}, ask); got.Sold != 0 {
		t.Errorf("wall time: %+v", got)
	}
	if got := sellTo(machine(360), usual(), ask); got.Sold != 1 || got.Broken != 0 || got.CoreSeconds != 3000 {
		t.Errorf("optimistic: %+v", got)
	}
}

func TestAPromiseIsBrokenIfAJobRunsLonger(t *testing.T) {
	asks := []ask{
		{At: 20_010, Start: 21_000, Wall: 600, Cores: 5},
		{At: 20_020, Start: 21_000, Wall: 600, Cores: 5},
		{At: 21_100, Start: 25_000, Wall: 600, Cores: 5},
	}
	got := sellTo(machine(3000), usual(), asks...)
	if got.Sold != 3 || got.Broken != 2 || got.CoreSeconds != 3000 {
		t.Errorf("%+v", got)
	}
}

func TestABrokenSlotIsGivenBack(t *testing.T) {
	asks := []ask{
		{At: 20_010, Start: 21_000, Wall: 9000, Cores: 10}, // broken: the job runs until 23,000
		{At: 23_500, Start: 24_000, Wall: 600, Cores: 10},
	}
	if got := sellTo(machine(3000), usual(), asks...); got.Sold != 2 || got.Broken != 1 || got.CoreSeconds != 6000 {
		t.Errorf("%+v", got)
	}
}

func TestOfSeveralSlotsTheLastSoldIsBroken(t *testing.T) {
	l := machine(3000)
	l.Jobs[len(l.Jobs)-1].Procs = 6
	asks := []ask{
		{At: 20_010, Start: 21_000, Wall: 600, Cores: 4}, // beside the job
		{At: 20_020, Start: 20_900, Wall: 600, Cores: 2}, // begins first, and the other one finds it there
	}
	got := sellTo(l, usual(), asks...)
	if got.Sold != 2 || got.Broken != 1 || got.CoreSeconds != 2400 {
		t.Errorf("%+v", got)
	}
}

func TestWallTimePromisesAreKept(t *testing.T) {
	l := synthetic(t, 7, 10, .9)
	if c := compareViews(l, 500); c.wallTime.Broken != 0 || c.wallTime.Sold == 0 {
		t.Errorf("wall time: %+v", c.wallTime)
	}
}

// The optimistic view sells more slots, and breaks at most one promise in a hundred.
func TestMoreSlotsAtTheSameRateOfBrokenPromises(t *testing.T) {
	c := compareViews(synthetic(t, 5, 30, .95), 1500)
	t.Logf("%+v", c)
	if c.optimistic.Sold <= c.wallTime.Sold || c.optimistic.Broken*100 > c.optimistic.Sold || c.wallTime.Asked != 1500 {
		t.Errorf("%+v", c)
	}
}

func TestTheSameAsksMakeTheSameSales(t *testing.T) {
	if one, two := compareViews(synthetic(t, 5, 5, .9), 200), compareViews(synthetic(t, 5, 5, .9), 200); one != two {
		t.Errorf("%+v, then %+v", one, two)
	}
}
