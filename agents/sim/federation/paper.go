package federation

import (
	"fmt"
	"time"

	"ramp/agents/sim"
	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/english/rules"
	"ramp/protocol/message"
)

// Paper is the experiment of 003: two centres with two installations each, a stream of jobs
// of four levels, and a stream of local jobs at each installation. Times are in thousandths
// of the mean run time.
type Paper struct {
	Seed   uint64
	Jobs   int   // of the global stream
	Mean   int64 // run time of a job, 1000: the unit
	Length int64 // of an auction, of the unit
	Poll   int64
	Within int64 // transfer within a centre
	Beyond int64 // and between centres
	Gamma  int64 // in thousandths of a module for each unit of transfer
	Load   int64 // of each stream, in thousandths of the modules
	Scale  int64 // all times are so many times longer; 1: the unit is 10 s
}

// As003 is the experiment as it was published, with what it leaves open as chosen here.
func As003() Paper {
	return Paper{Jobs: 400, Mean: 1000, Length: 350, Poll: 500, Within: 400, Beyond: 1000, Gamma: 8000, Load: 250, Scale: 1}
}

func paperModules() []int { return []int{4, 5, 6, 8} }

// Modules that a job of either stream can use.
const (
	paperMost = 4
	localMost = 2
)

// tick is a thousandth of the mean run time at scale 1.
const tick = 10 * time.Millisecond

func (p Paper) unit(n int64) time.Duration { return time.Duration(n*p.Scale) * tick }

// Config is the federation of the experiment.
func (p Paper) Config() Config {
	return Config{
		Seed: p.Seed, Modules: paperModules(), Users: 1, Free: true, Calm: time.Duration(p.Scale) * 30 * time.Hour,
		Rules: p.rules, Jobs: p.jobs,
	}
}

func (p Paper) rules(sites, users []protocol.AgentID) rules.Rules {
	r := rules.Rules{
		Digest: "003", Levels: []string{"1", "2", "3", "4"}, Users: map[protocol.AgentID]int{users[0]: message.MaxLevels},
		// The value of a second of transfer does not change, that of a module does: so equal
		// shares of the run time are equally dear at any scale.
		Scale: english.Scale{Alpha: 1000 * p.Scale, Gamma: p.Gamma / 10, Minimum: -1 << 60}, Length: p.Length, Mean: p.unit(1000),
		Poll: p.unit(p.Poll), Within: p.unit(p.Within), Beyond: p.unit(p.Beyond),
	}
	for i, s := range sites {
		r.Sites = append(r.Sites, rules.Site{Agent: s, Centre: fmt.Sprintf("c%d", i/2)})
	}
	return r
}

// jobs are the streams, each a Poisson process.
func (p Paper) jobs(sites []protocol.AgentID) []Job {
	c := sim.NewChance(p.Seed, 13)
	all := 0
	for _, n := range paperModules() {
		all += n
	}
	// A job on k modules keeps them for its run: rate · k · mean = load · modules.
	gap := func(modules, k int) time.Duration {
		return time.Duration(int64(k)*p.Mean*1000/(p.Load*int64(modules))) * tick
	}
	var list []Job
	at := time.Duration(0)
	for i := range p.Jobs {
		at += c.Waiting(gap(all, paperMost))
		list = append(list, p.job(c, fmt.Sprintf("g%04d", i), at, c.N(len(sites)), paperMost, sites[c.N(len(sites))]))
	}
	for s, n := range paperModules() {
		for t, i := c.Waiting(gap(n, localMost)), 0; t < at; t, i = t+c.Waiting(gap(n, localMost)), i+1 {
			j := p.job(c, fmt.Sprintf("l%d-%04d", s, i), t, s, localMost, sites[s])
			j.Local = true
			list = append(list, j)
		}
	}
	for i := range list {
		list[i].At *= time.Duration(p.Scale)
		list[i].Work *= time.Duration(p.Scale)
	}
	return list
}

// job draws a job whose run on most modules has the mean length.
func (p Paper) job(c sim.Chance, id string, at time.Duration, home, most int, where protocol.AgentID) Job {
	work := c.Waiting(time.Duration(p.Mean)*tick) / 1000 * speedUp(most)
	return Job{ID: id, At: at, Home: home, Work: work, Terms: message.JobTerms{
		Level: 1 + c.N(message.MaxLevels), Least: 1, Most: most, Wall: 24 * time.Hour, Bytes: 1 << 30, Where: where,
	}}
}

// Measured is what an experiment shows of its global jobs, in units of the run time.
type Measured struct {
	Wait       [message.MaxLevels + 1]float64 // from the offer to the begin, by level; 0: of all
	Processing [message.MaxLevels + 1]float64 // from the offer to the end
	Better     float64                        // share that went to a later, better bid
	Violations []string
}

// Run runs the experiment.
func (p Paper) Run(cast *Cast, stop func() bool) Measured {
	w := Open(cast, p.Config())
	w.Live(stop)
	m := Measured{Violations: w.Violations}
	var n [message.MaxLevels + 1]float64
	unit := p.unit(1000).Seconds()
	for _, f := range w.Fates() {
		if f.Job.Local || f.Ended.IsZero() {
			continue
		}
		offered := Dawn.Add(f.Job.At)
		for _, level := range []int{0, f.Job.Terms.Level} {
			n[level]++
			m.Wait[level] += f.Started.Sub(offered).Seconds() / unit
			m.Processing[level] += f.Ended.Sub(offered).Seconds() / unit
		}
	}
	for i := range n {
		if n[i] > 0 {
			m.Wait[i], m.Processing[i] = m.Wait[i]/n[i], m.Processing[i]/n[i]
		}
	}
	if ended, better := w.Better(); ended > 0 {
		m.Better = float64(better) / float64(ended)
	}
	return m
}

// Plus adds up measurements, for a mean.
func (m Measured) Plus(o Measured) Measured {
	for i := range m.Wait {
		m.Wait[i] += o.Wait[i]
		m.Processing[i] += o.Processing[i]
	}
	m.Better += o.Better
	m.Violations = append(m.Violations, o.Violations...)
	return m
}

// Over divides measurements by their number.
func (m Measured) Over(n float64) Measured {
	for i := range m.Wait {
		m.Wait[i] /= n
		m.Processing[i] /= n
	}
	m.Better /= n
	return m
}
