package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Cut selects the jobs of a log to keep: those submitted in [From, To), and among these, in the
// order of the file, at most Jobs after the first Skip. Jobs without a submit time are kept only if
// From is 0 and To is Forever. The bursts of a swapped job go with its first line.
type Cut struct {
	From, To   int64 // seconds of the log, 0..MaxTime; a To of 0 is Forever
	Skip, Jobs int   // a Jobs of 0 is all
	Rebase     bool  // From becomes second 0
}

// Validate names the wrong field and the allowed values.
func (c Cut) Validate() error {
	switch {
	case c.From < 0 || c.From > MaxTime:
		return fmt.Errorf("from %d: want 0..%d", c.From, int64(MaxTime))
	case c.To != 0 && c.To <= c.From:
		return fmt.Errorf("to %d: want more than the first second, %d", c.To, c.From)
	case c.Skip < 0 || c.Skip > MaxJobs:
		return fmt.Errorf("skip %d: want 0..%d", c.Skip, MaxJobs)
	case c.Jobs < 0 || c.Jobs > MaxJobs:
		return fmt.Errorf("jobs %d: want 0..%d", c.Jobs, MaxJobs)
	}
	return nil
}

// Slice is a part of a log. Its comments stay, except that MaxJobs and MaxRecords count
// the remaining jobs, EndTime is theirs, MaxProcs is always present (the largest job may be
// gone), and a note describes the cut. With Rebase the submit times and the headers
// UnixStartTime and StartTime move too, so that every job keeps its date. Job numbers stay, so
// that references to preceding jobs hold.
func Slice(l *Log, c Cut) (*Log, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.To = cmp.Or(c.To, Forever)
	out := &Log{Comments: slices.Clone(l.Comments), Jobs: c.keep(l)}
	out.recount(len(l.Jobs), l.Capacity(), c)
	if c.Rebase {
		out.rebase(c.From)
	}
	if start, told := out.UnixStart(); told && (c.Rebase || len(out.Jobs) < len(l.Jobs)) {
		_, end := NewView(out).Span()
		out.redate("EndTime", start+end)
	}
	return out, nil
}

func (c Cut) keep(l *Log) []Job {
	var kept []Job
	first, met := map[int32]bool{}, 0 // of swapped jobs: whether the first line was kept
	for i := range l.Jobs {
		j := &l.Jobs[i]
		in, later := first[j.Number]
		if later = later && j.Status.Partial(); !later {
			in = c.covers(j)
			if in {
				met++
			}
			in = in && met > c.Skip && (c.Jobs == 0 || met-c.Skip <= c.Jobs)
			first[j.Number] = in
		}
		if in {
			kept = append(kept, *j)
		}
	}
	return kept
}

func (c Cut) covers(j *Job) bool {
	if j.Submit < 0 {
		return c.From == 0 && c.To == Forever
	}
	return j.Submit >= c.From && j.Submit < c.To
}

func (l *Log) recount(before, capacity int, c Cut) {
	for _, key := range []string{"MaxJobs", "MaxRecords"} {
		if _, told := l.Header(key); told {
			l.SetHeader(key, strconv.Itoa(len(l.Jobs)))
		}
	}
	if _, told := l.maxProcs(); !told && capacity > 0 {
		l.SetHeader("MaxProcs", strconv.Itoa(capacity))
	}
	l.Comments = append(l.Comments, fmt.Sprintf(" Note: a slice: %d of %d jobs, %s", len(l.Jobs), before, c.words()))
}

func (c Cut) words() string {
	s := fmt.Sprintf("submitted from second %d on", c.From)
	if c.To != Forever {
		s = fmt.Sprintf("submitted in seconds %d to %d", c.From, c.To)
	}
	if c.Skip > 0 || c.Jobs > 0 {
		s += fmt.Sprintf(", jobs skipped %d", c.Skip)
	}
	if c.Rebase {
		s += fmt.Sprintf(", second %d made 0", c.From)
	}
	return s
}

// rebase makes second from of the log its second 0.
func (l *Log) rebase(from int64) {
	for i := range l.Jobs {
		if j := &l.Jobs[i]; j.Submit >= 0 {
			j.Submit = max(j.Submit-from, Unknown) // a later burst may have nonsense
		}
	}
	start, told := l.UnixStart()
	if !told {
		return
	}
	start += from
	l.SetHeader("UnixStartTime", strconv.FormatInt(start, 10))
	l.redate("StartTime", start)
}

func (l *Log) redate(key string, unix int64) {
	if _, told := l.Header(key); told {
		l.SetHeader(key, time.Unix(unix, 0).UTC().Format(time.UnixDate))
	}
}
