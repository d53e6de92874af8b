package workload

import (
	"strconv"
	"strings"
)

// Kind is a kind of oddity of a log.
type Kind string

// The kinds of notes.
const (
	NoMaxProcs      Kind = "no-max-procs"
	NoUnixStart     Kind = "no-unix-start"
	OddHeader       Kind = "odd-header"
	OtherRecords    Kind = "other-records"
	NoSubmit        Kind = "no-submit"
	OutOfOrder      Kind = "out-of-order"
	NoRun           Kind = "no-run"
	NoProcs         Kind = "no-procs"
	NoAllocation    Kind = "no-allocation"
	NoWait          Kind = "no-wait"
	NoRequestedTime Kind = "no-requested-time"
	Overrun         Kind = "overrun"
	Oversize        Kind = "oversize"
	RepeatedNumber  Kind = "repeated-number"
	BurstLine       Kind = "burst-line"
	BurstLeftOut    Kind = "burst-left-out"
	OddField        Kind = "odd-field"
)

// Kinds lists all kinds, in the order of a report.
func Kinds() []Kind {
	return []Kind{
		NoMaxProcs, NoUnixStart, OddHeader, OtherRecords, NoSubmit, OutOfOrder, NoRun, NoProcs, NoAllocation,
		NoWait, NoRequestedTime, Overrun, Oversize, RepeatedNumber, BurstLine, BurstLeftOut, OddField,
	}
}

// text says what is odd, and how it is handled.
func (k Kind) text() string {
	return map[Kind]string{
		NoMaxProcs:      "no MaxProcs header: the machine is as large as its largest job, on this line",
		NoUnixStart:     "no UnixStartTime header above 0: the dates of the log are not known",
		OddHeader:       "a header that should begin with a whole number (MaxProcs: up to 1073741824) does not: it is not used",
		OtherRecords:    "the MaxRecords header differs from the number of jobs: it is not used",
		NoSubmit:        "no submit time: the job is left out",
		OutOfOrder:      "submitted before the job above it: jobs are sorted by submit time",
		NoRun:           "no run time: the job is left out",
		NoProcs:         "neither allocated nor requested processors, or more than 1073741824: the job is left out",
		NoAllocation:    "no allocated processors: the requested ones stand in",
		NoWait:          "no wait time: the job started when it was submitted",
		NoRequestedTime: "no requested time: the run time stands in",
		Overrun:         "ran longer than it had asked for: a sold slot may end it at its limit",
		Oversize:        "more processors than the machine has: the job counts as large as the machine",
		RepeatedNumber:  "the number of a job above it: taken for another job",
		BurstLine:       "a burst of a swapped job: it starts when the one before it has ended and its wait is over",
		BurstLeftOut:    "a burst of a job that has a summary line: the summary counts",
		OddField:        "a field that is not needed has no allowed value: it counts as unknown",
	}[k]
}

type notes map[Kind]*Note

func (n notes) add(k Kind, line int32) {
	if n[k] == nil {
		n[k] = &Note{Kind: k, Line: int(line)}
	}
	n[k].Count++
}

func (n notes) list() []Note {
	var list []Note
	for _, k := range Kinds() {
		if n[k] != nil {
			list = append(list, *n[k])
		}
	}
	return list
}

func notesOf(l *Log, p places) []Note {
	n := notes{}
	n.headers(l, p)
	for _, line := range p.odd {
		n.add(OddField, line)
	}
	summed, capacity := l.summarised(), int64(l.Capacity())
	seen := make(map[int32]bool, len(l.Jobs))
	latest := int64(0)
	for i := range l.Jobs {
		j, line := &l.Jobs[i], p.jobs[i]
		switch burst := j.Status.Partial(); {
		case burst && summed[j.Number]:
			n.add(BurstLeftOut, line)
			continue
		case burst:
			n.add(BurstLine, line)
		case seen[j.Number]:
			n.add(RepeatedNumber, line)
		}
		seen[j.Number] = true
		if j.Submit >= 0 && j.Submit < latest {
			n.add(OutOfOrder, line)
		}
		latest = max(latest, j.Submit)
		n.job(j, line, capacity)
	}
	return n.list()
}

func (n notes) headers(l *Log, p places) {
	h := l.Headers()
	if _, told := l.maxProcs(); !told {
		n.add(NoMaxProcs, l.largest(p))
	}
	if h.UnixStartTime == 0 {
		n.add(NoUnixStart, 0)
	}
	for i, c := range l.Comments {
		f, ok := headerOf(c)
		if !ok {
			continue
		}
		_, number, _ := h.place(f.Key)
		word, _, _ := strings.Cut(f.Value, " ")
		if v, err := strconv.ParseInt(word, 10, 64); number != nil && (err != nil || number == &h.MaxProcs && v > MaxCapacity) {
			n.add(OddHeader, p.comments[i])
		}
		if number == &h.MaxRecords && h.MaxRecords > 0 && h.MaxRecords != int64(len(l.Jobs)) {
			n.add(OtherRecords, p.comments[i])
		}
	}
}

// largest is the line of the job with most processors; 0: none ran.
func (l *Log) largest(p places) int32 {
	most, line := 0, int32(0)
	for i := range l.Jobs {
		if b, ok := l.Jobs[i].burst(Burst{}); ok && b.Cores > most {
			most, line = b.Cores, p.jobs[i]
		}
	}
	return line
}

// job checks one line. For a skipped job only the reason counts.
func (n notes) job(j *Job, line int32, capacity int64) {
	cores := j.Procs
	if cores <= 0 {
		cores = j.RequestedProcs
	}
	switch {
	case j.Submit < 0 && !j.Status.Partial():
		n.add(NoSubmit, line)
		return
	case j.Run <= 0:
		n.add(NoRun, line)
		return
	case cores <= 0 || cores > MaxCapacity:
		n.add(NoProcs, line)
		return
	}
	n.ran(j, line)
	if int64(cores) > capacity {
		n.add(Oversize, line)
	}
}

func (n notes) ran(j *Job, line int32) {
	if j.Procs <= 0 {
		n.add(NoAllocation, line)
	}
	if j.Wait < 0 {
		n.add(NoWait, line)
	}
	switch {
	case j.RequestedTime <= 0:
		n.add(NoRequestedTime, line)
	case j.Run > j.RequestedTime:
		n.add(Overrun, line)
	}
}
