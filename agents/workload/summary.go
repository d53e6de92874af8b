package workload

import "slices"

// BusyShare is the mean load from which on a week counts as busy in a Summary (specs §1.4).
const BusyShare = 0.6

// Summary describes a log: its machine, the covered time and the load (002 tables 1 and
// 2), and the sizes, run times and waits of its jobs.
type Summary struct {
	Jobs      int     // lines
	Ran       int     // bursts, see Log.Bursts
	Cores     int     // of the machine
	CoresTold bool    // by a header; otherwise Cores is the most of any job
	UnixStart int64   // Unix time of second 0; 0: unknown
	First     int64   // first start, second of the log
	Last      int64   // last end
	Load      float64 // mean share of the machine that was busy from First to Last
	Peak      int     // most cores busy at once, as recorded: may exceed Cores
	BusyFrom  int64   // FirstBusyWeek at BusyShare, or -1
	Users     int     // number of different users

	Serial, Pow2 float64 // shares of the bursts with one core, and with a power of two above one
	Size         Spread  // cores
	Run          Spread  // seconds
	Wait         Spread  // seconds, where known
	Asked        Spread  // requested time, seconds, where known
}

// Spread describes a distribution of values; all zero without values.
type Spread struct {
	Known  int     `json:"known"`
	Mean   float64 `json:"mean"`
	Median int64   `json:"median"`
	P95    int64   `json:"p95"` // the least value that 95 % do not exceed
	Max    int64   `json:"max"`
}

// SpreadOf sorts the values and describes their distribution.
func SpreadOf(v []int64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	slices.Sort(v)
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	n := len(v)
	return Spread{
		Known: n, Mean: sum / float64(n),
		Median: v[(n-1)/2], P95: v[(95*n+99)/100-1], Max: v[n-1],
	}
}

// Summarise computes the Summary of a log.
func Summarise(l *Log) Summary {
	v := NewView(l)
	s := Summary{Jobs: len(l.Jobs), Cores: l.Capacity(), BusyFrom: Unknown}
	_, s.CoresTold = l.maxProcs()
	s.UnixStart, _ = l.UnixStart()
	s.First, s.Last = v.Span()
	s.Load, s.Peak = v.Load(s.First, s.Last), v.MostBusy(s.First, s.Last)
	if at, ok := v.FirstLoaded(Week, BusyShare); ok {
		s.BusyFrom = at
	}
	s.jobs(l)
	return s
}

func (s *Summary) jobs(l *Log) {
	var sizes, runs, waits, asked []int64
	serial, pow2 := 0, 0
	for b := range l.Bursts() {
		sizes, runs = append(sizes, int64(b.Cores)), append(runs, b.End-b.Start)
		switch {
		case b.Cores == 1:
			serial++
		case b.Cores&(b.Cores-1) == 0:
			pow2++
		}
	}
	users, summed := map[int32]bool{}, l.summarised()
	for i := range l.Jobs {
		j := &l.Jobs[i]
		if _, ok := j.burst(Burst{}); !ok || j.Status.Partial() && summed[j.Number] {
			continue
		}
		if j.User >= 0 {
			users[j.User] = true
		}
		if j.Wait >= 0 {
			waits = append(waits, int64(j.Wait))
		}
		if j.RequestedTime > 0 {
			asked = append(asked, int64(j.RequestedTime))
		}
	}
	s.Ran, s.Users = len(sizes), len(users)
	s.Size, s.Run, s.Wait, s.Asked = SpreadOf(sizes), SpreadOf(runs), SpreadOf(waits), SpreadOf(asked)
	if s.Ran > 0 {
		s.Serial, s.Pow2 = float64(serial)/float64(s.Ran), float64(pow2)/float64(s.Ran)
	}
}
