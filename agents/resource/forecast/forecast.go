package forecast

// Clusters is the number of classes of jobs: each learns from its own kind.
const Clusters = 4

// Cluster is the class of a job by its cores: 1–4, 5–16, 17–64, 65 and more.
func Cluster(cores int) int {
	switch {
	case cores <= 4:
		return 0
	case cores <= 16:
		return 1
	case cores <= 64:
		return 2
	}
	return 3
}

// ClusterName says which cores a class has, for people.
func ClusterName(cluster int) string {
	return [Clusters]string{"1-4", "5-16", "17-64", "65+"}[cluster]
}

// Bound is an upper bound in seconds. It is not Known while too little was
// observed.
type Bound struct {
	Seconds int64
	Known   bool
}

// Score is how bounds that were told have held.
type Score struct {
	Told int64 `json:"told"` // bounds told of jobs that have started
	Held int64 `json:"held"` // of these, jobs that started within theirs
}

// Rate is the share of bounds that held; false if none was told.
func (s Score) Rate() (float64, bool) {
	if s.Told == 0 {
		return 0, false
	}
	return float64(s.Held) / float64(s.Told), true
}

func (s Score) plus(x Score) Score { return Score{s.Told + x.Told, s.Held + x.Held} }

// Forecast is what a site has learnt of its jobs. The zero value has learnt
// nothing.
type Forecast struct {
	waits  [Clusters]Series // seconds
	runs   [Clusters]Series // parts of the requested time, in units of 1/partUnit
	scores [Clusters]Score
}

// Started learns the wait, in seconds, of a job that starts. Told is the bound
// that was known when the job was submitted; if it was Known, it is scored.
func (f *Forecast) Started(cores int, wait int64, told Bound) {
	c := Cluster(cores)
	if told.Known {
		f.scores[c].Told++
		if wait <= told.Seconds {
			f.scores[c].Held++
		}
	}
	f.waits[c].Learn(wait)
}

// WaitBound is how long a job of that size, submitted now, waits at most, at
// that level.
func (f *Forecast) WaitBound(cores int, l Level) Bound {
	x, ok := f.waits[Cluster(cores)].Bound(l)
	return Bound{Seconds: x, Known: ok}
}

// StartWithin is the probability that a job of that size, submitted now, starts
// within so many seconds: the largest q of which the bound is not longer (specs
// §1.6). It is false while too little was observed.
func (f *Forecast) StartWithin(cores int, seconds int64, confidence float64) (float64, bool) {
	return f.waits[Cluster(cores)].Within(seconds, confidence)
}

// Score is how the told bounds of a class have held.
func (f *Forecast) Score(cluster int) Score { return f.scores[cluster] }

// Total is how all told bounds have held.
func (f *Forecast) Total() Score {
	var all Score
	for _, s := range f.scores {
		all = all.plus(s)
	}
	return all
}

// Waits is the history of waits of a class, to be read.
func (f *Forecast) Waits(cluster int) *Series { return &f.waits[cluster] }

// Runs is the history of run times of a class, in millionths of the requested
// time, to be read.
func (f *Forecast) Runs(cluster int) *Series { return &f.runs[cluster] }
