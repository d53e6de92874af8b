package slurm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/script"
	"ramp/protocol"
)

// record is a job of the agent as Slurm shows it.
type record struct {
	id         int64
	comment    string
	state      string
	start, end time.Time
	wait       int           // exit status in the form of wait(2)
	ran        time.Duration // without suspended time
	reason     string        // why it waits, in Slurm's words
}

// The columns of squeue, and its first line. Only the last column can contain the
// separator: names and comments are the driver's own, the others are Slurm's words and
// numbers, but a site may word its reasons itself.
const (
	columns = "Name:|,Comment:|,JobID:|,State:|,StartTime:|,EndTime:|,exit_code:|,TimeUsed:|,Reason:|"
	heading = "NAME|COMMENT|JOBID|STATE|START_TIME|END_TIME|EXIT_CODE|TIME|REASON|"
)

// maxNames bounds the names of one query, in bytes: Linux allows 128 KiB in an argument.
const maxNames = 64 << 10

// records returns the jobs of these names that Slurm still knows, ended or not, by name.
func (c cluster) records(names []string) (map[string][]record, error) {
	all := map[string][]record{}
	for len(names) > 0 {
		n, size := 0, 0
		for n < len(names) && size+len(names[n]) < maxNames {
			size += len(names[n]) + 1
			n++
		}
		b, err := c.run("squeue", "--all", "--states=all", "--name="+strings.Join(names[:n], ","), "--Format="+columns)
		if err != nil {
			return nil, err
		}
		if err := readRecords(b, all); err != nil {
			return nil, err
		}
		names = names[n:]
	}
	return all, nil
}

// readRecords reads what squeue prints. A list without its heading or its last newline
// is an error: jobs must not look lost because the list was cut off.
func readRecords(b []byte, all map[string][]record) error {
	rest, ok := bytes.CutPrefix(b, []byte(heading+"\n"))
	switch {
	case !ok:
		return fmt.Errorf("squeue printed no list of jobs: its first line is not %q", heading)
	case len(rest) > 0 && rest[len(rest)-1] != '\n':
		return fmt.Errorf("squeue: its list is cut off after %d bytes", len(b))
	}
	for line := range bytes.Lines(rest) {
		name, r, err := readRecord(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return fmt.Errorf("squeue: %w", err)
		}
		all[name] = append(all[name], r)
	}
	return nil
}

func readRecord(line string) (string, record, error) {
	rest, ended := strings.CutSuffix(line, "|")
	f := strings.SplitN(rest, "|", strings.Count(heading, "|"))
	if !ended || len(f) != strings.Count(heading, "|") {
		return "", record{}, fmt.Errorf("%.80q is not a job", line)
	}
	r := record{comment: f[1], state: f[3], reason: f[8]}
	var err [5]error
	r.id, err[0] = strconv.ParseInt(f[2], 10, 64)
	r.start, err[1] = instant(f[4])
	r.end, err[2] = instant(f[5])
	r.wait, err[3] = waited(f[6])
	r.ran, err[4] = elapsed(f[7])
	if e := cmp.Or(err[:]...); e != nil {
		return "", record{}, fmt.Errorf("%.80q is not a job: %w", line, e)
	}
	return f[0], r, nil
}

// waited reads how a job ended: 22.05 prints the status of wait(2), 24.11 CODE:SIGNAL.
func waited(s string) (int, error) {
	i := strings.IndexByte(s, ':')
	code, err := strconv.Atoi("0" + s[:max(i, 0)])
	signal, err2 := strconv.Atoi(s[i+1:])
	return code<<8 | signal, cmp.Or(err, err2)
}

// instant reads a time of Slurm; zero: it has none.
func instant(s string) (time.Time, error) {
	if s == "N/A" || s == "Unknown" || s == "None" {
		return time.Time{}, nil
	}
	return time.Parse(stamp, s)
}

// maxDays bounds the days that a job ran.
const maxDays = 10 * 366

// elapsed reads how long a job ran: [DAYS-][HOURS:]MINUTES:SECONDS. Slurm sometimes
// prints INVALID for a job that has not begun.
func elapsed(s string) (time.Duration, error) {
	if s == "INVALID" || s == "N/A" {
		return 0, nil
	}
	days, clock, ok := strings.Cut(s, "-")
	if !ok {
		days, clock = "0", s
	}
	d, err := strconv.ParseUint(days, 10, 32)
	parts := strings.Split(clock, ":")
	if err != nil || d > maxDays || len(parts) < 2 || len(parts) > 3 {
		return 0, fmt.Errorf("%q is not a time", s)
	}
	sum := time.Duration(0)
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time", s)
		}
		sum = 60*sum + time.Duration(n)*time.Second
	}
	return sum + time.Duration(d)*24*time.Hour, nil
}

func (r record) is(states ...string) bool { return slices.Contains(states, r.state) }

// waits reports whether a job has not begun and may begin.
func (r record) waits() bool {
	return r.is("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "REQUEUE_FED")
}

// how is the way in which a job has ended completely; false: it has not.
func (r record) how() (script.How, bool) {
	switch r.state {
	case "COMPLETED", "FAILED", "OUT_OF_MEMORY":
		if r.refused() {
			return script.Failed, true
		}
		return script.Exited, true
	case "CANCELLED":
		return script.Cancelled, true
	case "TIMEOUT", "DEADLINE":
		return script.Limit, true
	case "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED":
		return script.Failed, true
	}
	return 0, false
}

// refused reports whether Slurm keeps a record of a job that it did not take.
func (r record) refused() bool { return r.is("FAILED") && r.reason == "BadConstraints" }

func (r record) over() bool {
	_, over := r.how()
	return over
}

// entry is the status of a job, to be combined with the job's files.
func (r record) entry() script.Entry {
	how, over := r.how()
	s := script.Entry{Report: script.Report{How: how, Start: r.start, End: r.end, Exit: r.exit(), Ran: r.ran}}
	switch {
	case r.is("OUT_OF_MEMORY"):
		s.Note = "it ran out of memory"
	case r.refused():
		s.Note = "Slurm refused it: no node can meet what it asks for (BadConstraints)"
	case over && s.How == script.Failed:
		s.Note = "Slurm ended it: " + r.state
	case over:
	case r.waits():
		s.State, s.Note = protocol.JobWaiting, r.why()
	case r.is("SUSPENDED", "STOPPED"):
		s.State = protocol.JobSuspended
	default:
		s.State = protocol.JobRunning
	}
	return s
}

// why says what a job waits for besides its turn.
func (r record) why() string {
	switch r.reason {
	case "", "None", "BeginTime", "Reservation", "Priority":
		return ""
	}
	return "Slurm: " + queue.OneLine([]byte(r.reason[:min(len(r.reason), maxWord)]))
}

// exit is the exit code of a job that ended by itself, or 128 and the number of the
// signal that ended it.
func (r record) exit() int {
	if sig := r.wait & 0x7f; sig != 0 {
		return 128 + sig
	}
	return r.wait >> 8 & 0xff
}
