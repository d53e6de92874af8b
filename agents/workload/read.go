package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// ErrFormat is wrapped, with the line and the fault, by errors about a text that is not a
// log in the Standard Workload Format.
var ErrFormat = errors.New("not a workload log")

const fields = 18

// fieldName names a wrong field, from 0, in errors.
func fieldName(i int) string {
	return [fields]string{
		"job number", "submit time", "wait time", "run time", "allocated processors",
		"average CPU time", "used memory", "requested processors", "requested time",
		"requested memory", "status", "user", "group", "executable", "queue",
		"partition", "preceding job", "think time",
	}[i]
}

// Plain returns a reader of r's text: unpacked if r begins like a gzip file, and
// unchanged otherwise.
func Plain(r io.Reader) (io.Reader, error) {
	plain, err := unpack(r)
	if err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	return plain, nil
}

func unpack(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(2)
	if err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil // too short to be packed: the reader reports the fault
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("not a whole gzip file: %w", err)
	}
	return z, nil
}

// ReadSWF reads a log in the Standard Workload Format 2.2, as plain text. It keeps all
// fields unchanged, even impossible ones; Bursts decides which jobs ran. A field that is not
// needed for that counts as unknown if it has no allowed value. A line without eighteen
// fields, another field that does not fit, or a text beyond a bound of a log is an error that wraps ErrFormat and names the line and the allowed values. An error of the
// reader is passed on, with the line. Examine reports every fault instead of the first.
func ReadSWF(r io.Reader) (*Log, error) {
	log := &Log{}
	s := newLines(r)
	for s.next() {
		if _, err := log.addLine(s.line); err != nil {
			return nil, fmt.Errorf("line %d: %w", s.n, err)
		}
	}
	if s.err != nil {
		return nil, fmt.Errorf("line %d: %w", s.n, s.err)
	}
	return log, nil
}

// lines walks the lines of a text, within the bounds of a log.
type lines struct {
	b    *bufio.Reader
	line []byte // until the next call
	n    int    // number of the line, from 1
	err  error  // why the walk ended before the end of the text
	over bool
}

func newLines(r io.Reader) *lines { return &lines{b: bufio.NewReaderSize(r, MaxLine)} }

// next moves to the next line and reports whether there is one.
func (s *lines) next() bool {
	if s.over || s.err != nil {
		return false
	}
	s.n++
	line, err := s.b.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0: // the text ends with a newline
		s.n--
		return false
	case errors.Is(err, io.EOF):
		s.over = true
	case errors.Is(err, bufio.ErrBufferFull):
		s.err = fmt.Errorf("longer than %d bytes: %w", MaxLine, ErrFormat)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrHeader):
		s.err = fmt.Errorf("the compressed file is cut short here, or other bytes follow it: %w", err)
	case err != nil:
		s.err = err
	case s.n > MaxLines:
		s.err = fmt.Errorf("more than %d lines: %w", MaxLines, ErrFormat)
	}
	s.line = line
	return s.err == nil
}

// addLine adds a line, and reports whether an odd field of it counts as unknown.
func (l *Log) addLine(line []byte) (odd bool, err error) {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0:
		return false, nil
	case line[0] == ';':
		return false, l.addComment(string(line[1:]))
	case len(l.Jobs) == MaxJobs:
		return false, fmt.Errorf("more than %d jobs: %w", MaxJobs, ErrFormat)
	}
	job, odd, err := parseJob(line)
	if err != nil {
		return false, err
	}
	l.Jobs = append(l.Jobs, job)
	return odd, nil
}

func (l *Log) addComment(text string) error {
	if len(l.Comments) == MaxComments {
		return fmt.Errorf("more than %d comment lines: %w", MaxComments, ErrFormat)
	}
	bytes := len(text)
	for _, c := range l.Comments {
		bytes += len(c)
	}
	if bytes > MaxRemarks {
		return fmt.Errorf("more than %d bytes of comments: %w", MaxRemarks, ErrFormat)
	}
	l.Comments = append(l.Comments, text)
	return nil
}

// parseJob reads the eighteen fields of a line without allocating. odd: a field that is not
// needed has no allowed value, and counts as unknown.
func parseJob(line []byte) (job Job, odd bool, err error) {
	var v [fields]int64
	var cpu float64
	rest := line
	for i := range v {
		var word []byte
		if word, rest = nextWord(rest); len(word) == 0 {
			return Job{}, false, fmt.Errorf("%d fields, want %d: %w", i, fields, ErrFormat)
		}
		var ok bool
		if i == cpuField {
			cpu, ok = parseReal(word)
		} else {
			v[i], ok = parseInt(word)
			ok = ok && fits(i, v[i])
		}
		switch {
		case ok:
		case !needed(i):
			if v[i], odd = Unknown, true; i == cpuField {
				cpu = Unknown
			}
		default:
			return Job{}, false, fmt.Errorf("field %d (%s) is %q: want %s: %w", i+1, fieldName(i), word[:min(len(word), 40)], allowed(i), ErrFormat)
		}
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return Job{}, false, fmt.Errorf("more than %d fields: %w", fields, ErrFormat)
	}
	return jobOf(v, cpu), odd, nil
}

// needed reports whether a field, from 0, says when a job ran or how large it was. Requests
// do not: without them a job has what it was allocated, for as long as it ran.
func needed(field int) bool { return field < requestedField && field != cpuField && field != usedField }

// The fields, from 0, that are not 32-bit integers.
const (
	submitField    = 1
	cpuField       = 5
	usedField      = 6
	requestedField = 7 // the first of three
	memoryField    = 9
	statusField    = 10
)

func fits(field int, v int64) bool {
	switch field {
	case submitField:
		return v >= math.MinInt32 && v <= MaxTime
	case usedField, memoryField:
		return true
	case statusField:
		return v >= Unknown && v <= int64(StatusCancelled)
	}
	return v >= math.MinInt32 && v <= math.MaxInt32
}

// allowed describes the allowed values of a needed field in errors.
func allowed(field int) string {
	if field == submitField {
		return fmt.Sprintf("a whole number of at most %d, or -1", int64(MaxTime))
	}
	return fmt.Sprintf("a whole number of at most %d, or -1", math.MaxInt32)
}

// MaxTime bounds the times of a log, so that sums of them cannot overflow.
const MaxTime = 1 << 40

func jobOf(v [fields]int64, cpu float64) Job {
	return Job{
		Number: int32(v[0]), Submit: v[1], Wait: int32(v[2]), Run: int32(v[3]),
		Procs: int32(v[4]), CPU: cpu, Memory: v[6], RequestedProcs: int32(v[7]),
		RequestedTime: int32(v[8]), RequestedMem: v[9], Status: Status(v[10]),
		User: int32(v[11]), Group: int32(v[12]), Executable: int32(v[13]),
		Queue: int32(v[14]), Partition: int32(v[15]), Preceding: int32(v[16]), Think: int32(v[17]),
	}
}

func nextWord(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && blank(b[i]) {
		i++
	}
	j := i
	for j < len(b) && !blank(b[j]) {
		j++
	}
	return b[i:j], b[j:]
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// parseInt reads a decimal integer of at most eighteen digits, so that it cannot overflow.
func parseInt(b []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(b, []byte{'-'})
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// parseReal reads a number that may have a fraction: some logs average.
func parseReal(b []byte) (float64, bool) {
	if n, ok := parseInt(b); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}
