package workload

import (
	"fmt"
	"io"
)

// Report is what is wrong and what is odd in a log. With a fault the log is not
// usable: ReadSWF refuses it, or nothing in it ran. What is odd is dealt with by
// a rule (specs §1.3), which the note tells.
type Report struct {
	Lines  int     // of the text, empty ones too
	Jobs   int     // job lines that could be read
	Ran    int     // bursts that count: see Log.Bursts
	Faults []Fault // the first MaxFaults
	More   int     // faults beyond these
	Notes  []Note  // one of a kind, in the order of Kinds
}

// MaxFaults bounds the faults that a report tells one by one.
const MaxFaults = 100

// Fault is a line that is wrong, or with Line 0 a log that is.
type Fault struct {
	Line int
	What string // what is wrong and what is allowed
}

// Note is a kind of oddity, how often it occurs and where first.
type Note struct {
	Kind  Kind
	Count int
	Line  int // the first; 0: of the log as a whole
}

// String is the note for people.
func (n Note) String() string {
	if n.Line == 0 {
		return n.Kind.text()
	}
	if n.Count == 1 {
		return fmt.Sprintf("line %d: %s", n.Line, n.Kind.text())
	}
	return fmt.Sprintf("line %d and %d more: %s", n.Line, n.Count-1, n.Kind.text())
}

// Usable reports whether the log can be used.
func (r *Report) Usable() bool { return len(r.Faults) == 0 }

func (r *Report) fault(line int, what string) {
	if len(r.Faults) == MaxFaults {
		r.More++
		return
	}
	r.Faults = append(r.Faults, Fault{line, what})
}

// Examine reads a log as ReadSWF does, unpacked if it is a gzip file, but goes on
// behind a line that is wrong, and tells of all that it met. The log holds the
// lines that could be read.
func Examine(r io.Reader) (*Log, Report) {
	plain, err := unpack(r)
	if err != nil {
		return &Log{}, Report{Faults: []Fault{{1, err.Error()}}}
	}
	return examine(newLines(plain))
}

func examine(s *lines) (*Log, Report) {
	log, report := &Log{}, Report{}
	var places places
	for s.next() {
		jobs, comments := len(log.Jobs), len(log.Comments)
		if err := log.addLine(s.line); err != nil {
			report.fault(s.n, err.Error())
			if full := jobs == MaxJobs || comments == MaxComments; full {
				break // every line from here on would be a fault
			}
		}
		places.add(s.n, len(log.Jobs) > jobs, len(log.Comments) > comments)
	}
	report.Lines = s.n
	if s.err != nil {
		report.fault(s.n, s.err.Error())
	}
	report.Jobs = len(log.Jobs)
	report.Notes = notesOf(log, places)
	for range log.Bursts() {
		report.Ran++
	}
	if report.Ran == 0 && len(report.Faults) == 0 {
		report.fault(0, "no job ran: want a job with submit time, run time and processors")
	}
	return log, report
}

// places are the lines on which the jobs and the comments of a log stand.
type places struct{ jobs, comments []int32 }

func (p *places) add(line int, job, comment bool) {
	if job {
		p.jobs = append(p.jobs, int32(line))
	}
	if comment {
		p.comments = append(p.comments, int32(line))
	}
}
