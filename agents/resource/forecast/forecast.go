package forecast

// Clusters is the number of classes of jobs. Each class has its own histories.
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

// ClusterName names the cores of a class, for people.
func ClusterName(cluster int) string { return [Clusters]string{"1-4", "5-16", "17-64", "65+"}[cluster] }

// Bound is an upper bound in seconds. It is Known after enough observations.
type Bound struct {
	Seconds int64
	Known   bool
}

// Score counts how often bounds held.
type Score struct {
	Told int64 `json:"told"` // started jobs that had a bound
	Held int64 `json:"held"` // of these, jobs that started within their bound
}

// Rate is the share of bounds that held; false if there were none.
func (s Score) Rate() (float64, bool) {
	if s.Told == 0 {
		return 0, false
	}
	return float64(s.Held) / float64(s.Told), true
}

func (s Score) plus(x Score) Score { return Score{s.Told + x.Told, s.Held + x.Held} }

// Forecast owns what a site has learnt about its jobs. The zero value has learnt nothing.
type Forecast struct {
	waits  [Clusters]Series // seconds
	runs   [Clusters]Series // parts of the requested time, in units of 1/partUnit
	scores [Clusters]Score
}

// Started learns the wait, in seconds, of a job that starts. It scores told, the bound
// at the job's submission, if that was Known.
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

// WaitBound is the longest wait, at that level, of a job of that size submitted now.
func (f *Forecast) WaitBound(cores int, l Level) Bound {
	x, ok := f.waits[Cluster(cores)].Bound(l)
	return Bound{Seconds: x, Known: ok}
}

// StartWithin is the probability that a job of that size, submitted now, starts
// within so many seconds: the largest quantile with a bound of at most that (specs
// §1.6). It is false after too few observations.
func (f *Forecast) StartWithin(cores int, seconds int64, confidence float64) (float64, bool) {
	return f.waits[Cluster(cores)].Within(seconds, confidence)
}

// Score counts how often the bounds of a class held.
func (f *Forecast) Score(cluster int) Score { return f.scores[cluster] }

// Total counts how often all bounds held.
func (f *Forecast) Total() Score {
	var all Score
	for _, s := range f.scores {
		all = all.plus(s)
	}
	return all
}

// Waits returns the history of waits of a class, read-only.
func (f *Forecast) Waits(cluster int) *Series { return &f.waits[cluster] }

// Runs returns the history of run times of a class, in millionths of the requested time, read-only.
func (f *Forecast) Runs(cluster int) *Series { return &f.runs[cluster] }
