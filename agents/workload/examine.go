package workload

import (
	"fmt"
	"io"
)

// Report lists the faults and oddities of a log. A log with a fault is unusable: ReadSWF refuses
// it, or no job in it ran. Each oddity is handled by a rule (specs §1.3), which its note states.
type Report struct {
	Lines  int     // of the text, including empty ones
	Jobs   int     // readable job lines
	Ran    int     // bursts, see Log.Bursts
	Faults []Fault // the first MaxFaults
	More   int     // faults beyond these
	Notes  []Note  // one of each kind, in the order of Kinds
}

// MaxFaults bounds the faults that a report lists.
const MaxFaults = 100

// Fault is a wrong line, or with Line 0 a wrong log.
type Fault struct {
	Line int
	What string // the fault, and what is allowed
}

// Note is a kind of oddity, with its number of occurrences and the first of them.
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

// Examine reads a log like ReadSWF, unpacked if it is a gzip file, but continues after a
// wrong line, and reports all faults and oddities. The log has the readable lines.
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
		odd, err := log.addLine(s.line)
		if err != nil {
			report.fault(s.n, err.Error())
			if full := jobs == MaxJobs || comments == MaxComments; full {
				break // every further line would be a fault
			}
		}
		places.add(s.n, len(log.Jobs) > jobs, len(log.Comments) > comments, odd)
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
		report.fault(0, "no job ran: want a job with submit time, run time and 1 to 1073741824 processors")
	}
	return log, report
}

// places are the lines of a log's jobs and comments, and of jobs with an odd field.
type places struct{ jobs, comments, odd []int32 }

func (p *places) add(line int, job, comment, odd bool) {
	if odd {
		p.odd = append(p.odd, int32(line))
	}
	if job {
		p.jobs = append(p.jobs, int32(line))
	}
	if comment {
		p.comments = append(p.comments, int32(line))
	}
}
