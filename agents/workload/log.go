package workload

import "strings"

// Bounds of a log. A reader refuses a larger log, and names the line.
const (
	MaxJobs     = 1 << 22  // job lines, 88 bytes each in memory
	MaxLine     = 64 << 10 // bytes of one line
	MaxComments = 4096     // comment lines
	MaxRemarks  = 1 << 20  // bytes of all comments together
	MaxLines    = 1 << 23  // lines of any kind, including empty ones
)

// Unknown is an unknown value in SWF.
const Unknown = -1

// Status is a job's completion status, SWF field 11.
type Status int8

// The statuses of SWF 2.2. A job that was swapped out has a line for every
// burst (continued, and finally done or killed) and may have a summary line.
const (
	StatusFailed     Status = 0
	StatusCompleted  Status = 1
	StatusContinued  Status = 2 // a burst, more follow
	StatusLastDone   Status = 3 // the last burst of a job that completed
	StatusLastKilled Status = 4 // the last burst of a job that failed
	StatusCancelled  Status = 5
)

// Partial reports whether the line is one burst of a job.
func (s Status) Partial() bool { return s >= StatusContinued && s <= StatusLastKilled }

// Job is one line of a log: the eighteen fields of SWF 2.2 in order, unchanged. Times
// are seconds, memory is kilobytes per processor.
type Job struct {
	Number         int32
	Wait           int32
	Submit         int64
	Run            int32
	Procs          int32 // allocated
	CPU            float64
	Memory         int64
	RequestedProcs int32
	RequestedTime  int32
	RequestedMem   int64
	User           int32
	Group          int32
	Executable     int32
	Queue          int32
	Partition      int32
	Preceding      int32
	Think          int32
	Status         Status
}

// Log is a workload log: comment lines (without the leading ";") and jobs, both
// in the order of the file.
type Log struct {
	Comments []string
	Jobs     []Job
}

// Header returns the value of the first comment "key: value". Keys are compared without
// regard to case.
func (l *Log) Header(key string) (string, bool) {
	for _, c := range l.Comments {
		if f, ok := headerOf(c); ok && strings.EqualFold(f.Key, key) {
			return f.Value, true
		}
	}
	return "", false
}

// number is a header that begins with a positive integer.
func (l *Log) number(key string) (int64, bool) {
	v, _ := l.Header(key)
	return positive(v)
}

// UnixStart returns the Unix time of the log's second 0, if a header has it.
func (l *Log) UnixStart() (int64, bool) { return l.number("UnixStartTime") }

// maxProcs returns the size of the machine, if a header has a valid one.
func (l *Log) maxProcs() (int, bool) {
	n, ok := l.number("MaxProcs")
	return int(n), ok && n <= MaxCapacity
}

// Capacity is the number of cores of the machine: MaxProcs if a header has it, or else
// the most of any job (specs §1.3); 0 for an empty log.
func (l *Log) Capacity() int {
	if n, ok := l.maxProcs(); ok {
		return n
	}
	most := 0
	for b := range l.Bursts() {
		most = max(most, b.Cores)
	}
	return most
}

// MaxCapacity bounds the cores of a machine: a larger number counts as an error.
const MaxCapacity = 1 << 30
