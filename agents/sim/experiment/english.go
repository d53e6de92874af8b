package experiment

import (
	"context"
	"fmt"
	"math"

	"ramp/agents/sim/federation"
)

// The points of 003's figures, and how often each is measured.
const (
	englishSeeds = 12 // of figure 4
	englishFewer = 4  // of tables that 003 does not have
	english003   = 350
)

func englishLengths() []int { return steps(0, 1200, 100) }
func englishCoarse() []int  { return []int{0, 200, 300, 400, 600, 1000} }

// englishShort begins with lengths so short that only a wait for polls could make longer ones
// better. With a length of 0 there is no auction: the first bid wins, mostly the home's own.
func englishShort() []int { return append([]int{20, 100}, englishCoarse()...) }

// englishPoint is an experiment, and the table that it belongs to.
type englishPoint struct {
	table, what string
	federation.Paper
}

// points lists what is run: each table varies the length of the auction and one parameter.
func englishPoints(l *Lab) (list []englishPoint) {
	add := func(table, what string, lengths []int, seeds int, change func(p *federation.Paper)) {
		for _, length := range lengths {
			for seed := range l.repeat(seeds) {
				p := federation.As003()
				p.Jobs, p.Length, p.Seed = l.Settings.Jobs, int64(length), l.seed(seed)
				change(&p)
				list = append(list, englishPoint{table, what, p})
			}
		}
	}
	for mean := int64(1); mean <= 3; mean++ {
		add("jobs", fmt.Sprint(mean), englishLengths(), englishSeeds, func(p *federation.Paper) { // all times but that of the auction are longer
			p.Mean, p.Poll, p.Within, p.Beyond, p.Gamma = p.Mean*mean, p.Poll*mean, p.Within*mean, p.Beyond*mean, p.Gamma/mean
		})
	}
	for _, poll := range []int64{0, 250, 500, 1000} {
		lengths := englishCoarse()
		if poll == 0 {
			lengths = englishShort()
		}
		add("poll", portion(poll), lengths, englishFewer, func(p *federation.Paper) { p.Poll = poll })
	}
	for _, load := range []int64{150, 250, 350} {
		add("load", portion(load), englishCoarse(), englishFewer, func(p *federation.Paper) { p.Load = load })
	}
	for _, gamma := range []int64{0, 4000, 8000, 16000} {
		add("gamma", portion(gamma), englishCoarse(), englishFewer, func(p *federation.Paper) { p.Gamma = gamma })
	}
	for _, t := range []int64{0, 500, 1000, 2000} {
		add("transfer", portion(t), englishCoarse(), englishFewer, func(p *federation.Paper) { p.Within, p.Beyond = t*2/5, t })
	}
	return list
}

func portion(thousandths int64) string { return num(float64(thousandths)/1000, 2) }

// englishMeans are the means over the seeds, by table, parameter and length.
type englishMeans map[string]federation.Measured

func englishKey(table, what string, length int64) string {
	return fmt.Sprint(table, "|", what, "|", length)
}

// englishRun makes the figures of 003: how long jobs of each level take by the length of the
// auction, and how often a later bid wins.
func englishRun(ctx context.Context, l *Lab, r *Result) error {
	cast, err := federation.NewCast()
	if err != nil {
		return err
	}
	cast.Prepare(4, 1)
	points := englishPoints(l)
	out, err := gather(ctx, l, "federations", len(points), func(i int) federation.Measured {
		return points[i].Run(cast, func() bool { return ctx.Err() != nil })
	})
	if err != nil {
		return err
	}
	means := englishMeans{}
	var order []englishPoint
	count := map[string]float64{}
	for i, m := range out {
		p := points[i]
		k := englishKey(p.table, p.what, p.Length)
		if count[k]++; count[k] == 1 {
			order = append(order, p)
		}
		means[k] = means[k].Plus(m)
	}
	for k, m := range means {
		means[k] = m.Over(count[k])
	}
	englishTables(r, order, means)
	englishFigures(r, means)
	englishShapes(r, means)
	return nil
}

func englishTables(r *Result, order []englishPoint, means englishMeans) {
	about := map[string]string{
		"jobs": "By length of the auction and mean run time, in units of the mean run time 1", "poll": "By poll period of the sites",
		"load": "By load of each of the two streams", "gamma": "By weight of the transfer", "transfer": "By transfer time between centres (within: 0.4 of it)",
	}
	for _, name := range []string{"jobs", "poll", "load", "gamma", "transfer"} {
		t := Table{Name: name, File: "english_" + name, About: about[name], Columns: []string{name, "length", "wait 1", "wait 2", "wait 3", "wait 4", "processing 1", "processing 2", "processing 3", "processing 4", "P"}, Shown: name != "jobs"}
		if name == "jobs" {
			t.Columns[0] = "mean"
		}
		for _, p := range order {
			if p.table != name {
				continue
			}
			m := means[englishKey(p.table, p.what, p.Length)]
			row := []string{p.what, portion(p.Length)}
			for _, list := range [][]float64{m.Wait[1:], m.Processing[1:], {m.Better}} {
				for _, x := range list {
					row = append(row, num(x, 3))
				}
			}
			t.Rows = append(t.Rows, row)
		}
		r.table(t)
	}
}

func englishFigures(r *Result, means englishMeans) {
	p := chart("Figure 4: processing time by level", "length of the auction (mean run times)", "processing time (mean run times)")
	for level := 1; level <= 4; level++ {
		line := series{name: fmt.Sprintf("level %d", level), style: level}
		for _, length := range englishLengths() {
			line = line.with(float64(length)/1000, means[englishKey("jobs", "1", int64(length))].Processing[level])
		}
		add(p, line)
	}
	r.figure("english-fig4", "Figure 4: mean processing time by level; 4 is the most urgent one.", p)
	p = chart("Figure 5: later, better bids", "length of the auction (units)", "share of jobs P")
	for mean := 1; mean <= 3; mean++ {
		line := series{name: fmt.Sprintf("mean run time %d", mean), style: mean}
		for _, length := range englishLengths() {
			line = line.with(float64(length)/1000, means[englishKey("jobs", fmt.Sprint(mean), int64(length))].Better)
		}
		add(p, line)
	}
	r.figure("english-fig5", "Figure 5: share of jobs that went to another site than the first bidder's.", p)
}

// least is the length at which the most urgent jobs wait least, and how long they do.
func (m englishMeans) least(table, what string, lengths []int) (at int64, wait float64) {
	wait = -1
	for _, x := range lengths {
		if w := m[englishKey(table, what, int64(x))].Wait[4]; wait < 0 || w < wait {
			at, wait = int64(x), w
		}
	}
	return at, wait
}

func englishShapes(r *Result, m englishMeans) {
	at, wait := m.least("jobs", "1", englishLengths())
	none, whole := m[englishKey("jobs", "1", 0)].Wait[4], m[englishKey("jobs", "1", 1000)].Wait[4]
	r.shape("the best length is between 0.3 and 0.5", at >= 300 && at <= 500, portion(at), "0.3 to 0.5")
	r.shape("beside an auction without length", wait <= 0.92*none, num(1-wait/none, 3), "0.08 shorter, at least")
	r.shape("beside a length of 1", wait <= 0.8*whole, num(1-wait/whole, 3), "0.20 shorter, at least")
	busy, idle := m[englishKey("jobs", "1", at)].Processing[4], m[englishKey("jobs", "1", 1000)].Processing[4]
	r.shape("processing of the highest level, beside a length of 1", busy <= 0.75*idle, num(1-busy/idle, 3), "0.25 shorter, at least")
	long, short := m[englishKey("jobs", "1", 1000)].Better, m[englishKey("jobs", "1", 100)].Better
	r.shape("longer auctions find better bids", long > short, num(short, 3)+" to "+num(long, 3), "P rises")
	at, _ = m.least("poll", "0.00", englishShort())
	r.shape("without polls the shortest auction is best", at == int64(englishShort()[0]), portion(at), portion(int64(englishShort()[0]))+": the poll period makes the optimum")
	most := 0.0
	for _, length := range []int64{200, 400, 600} {
		most = max(most, math.Abs(m[englishKey("jobs", "1", length)].Better-m[englishKey("jobs", "2", 2*length)].Better))
	}
	r.shape("figure 5 depends on the ratio of the times alone", most <= 0.05, num(most, 3), "at most 0.05 apart")
	x := m[englishKey("jobs", "1", english003/100*100)]
	r.shape("the lowest level starves first", x.Processing[1] > x.Processing[4], num(x.Processing[4], 2)+" at level 4, "+num(x.Processing[1], 2)+" at level 1", "no ageing")
	faults := 0
	for _, v := range m {
		faults += len(v.Violations)
	}
	r.shape("no job runs twice, none is lost", faults == 0, fmt.Sprint(faults), "0")
}
