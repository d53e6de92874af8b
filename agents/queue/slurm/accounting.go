package slurm

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// The columns that sacct is asked for. The name of the reservation is the last: no
// other can have the separator in it.
const ledger = "JobIDRaw|State|Start|End|ElapsedRaw|AllocCPUS|TotalCPU|ReservationId|Reservation"

// lastColumn is that of the name, from 0.
const lastColumn = 8

// maxElapsed bounds the seconds that a job ran.
const maxElapsed = maxDays * 24 * 60 * 60

// accounted are the stretches in a slot that Slurm's accounting knows, of the
// accounts that may use what is reserved.
func (c cluster) accounted(a asked, users []string) ([]stretch, error) {
	b, err := c.run("sacct", "--allusers", "--duplicates", "--parsable2", "--user="+strings.Join(users, ","),
		"--starttime="+a.slot.Start.UTC().Format(stamp), "--endtime="+a.slot.End.UTC().Format(stamp), "--format="+strings.ReplaceAll(ledger, "|", ","))
	if err != nil {
		return nil, err
	}
	return readLedger(b, a)
}

// asked is a slot that the accounting is asked about.
type asked struct {
	name    string // of the reservation
	slot    protocol.Slot
	threads int64          // of a core
	seen    map[int64]bool // jobs that squeue has shown in it
}

// noAccounting reports whether there is none to ask: Slurm has it not, or the
// program is not there.
func noAccounting(err error) bool {
	text := strings.ToLower(err.Error())
	for _, words := range []string{"accounting storage is disabled", "no such file or directory", "not found"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// readLedger reads what sacct prints of the jobs in one reservation; their steps are
// in the jobs' sums. Jobs of others need not be legible, but a list without its
// heading, or that is cut off, is none.
func readLedger(b []byte, a asked) ([]stretch, error) {
	rest, ok := bytes.CutPrefix(b, []byte(ledger+"\n"))
	switch {
	case !ok:
		return nil, fmt.Errorf("sacct printed no list of jobs: its first line is not %q", ledger)
	case len(rest) > 0 && rest[len(rest)-1] != '\n':
		return nil, fmt.Errorf("sacct: its list is cut off after %d bytes", len(b))
	}
	var list []stretch
	numbers := a.numbers(rest)
	for line := range bytes.Lines(rest) {
		f := columnsOf(line)
		if !a.inside(f, numbers) {
			continue
		}
		s, begun, err := readStretch(f, a)
		if err != nil {
			return nil, fmt.Errorf("sacct: %q is no job: %w", queue.OneLine(line[:min(len(line), 120)]), err)
		}
		if begun {
			list = append(list, s)
		}
	}
	return list, nil
}

// columnsOf are the columns of a job; nil: it is a step, or no line of the list.
func columnsOf(line []byte) []string {
	f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), "|", lastColumn+1)
	if len(f) <= lastColumn || strings.Contains(f[0], ".") {
		return nil
	}
	return f
}

// certain reports whether a job is in the reservation beyond doubt. Of one that began
// in the very second in which the reservation did, accounting forgets the name.
func (a asked) certain(f []string) bool {
	switch {
	case f == nil:
		return false
	case f[lastColumn] != "":
		return f[lastColumn] == a.name
	}
	id, err := strconv.ParseInt(f[0], 10, 64)
	return err == nil && a.seen[id]
}

// numbers are what accounting calls the reservation, as jobs tell that are in it.
func (a asked) numbers(lines []byte) map[string]bool {
	all := map[string]bool{}
	for line := range bytes.Lines(lines) {
		if f := columnsOf(line); a.certain(f) && f[lastColumn-1] != "" && f[lastColumn-1] != "0" {
			all[f[lastColumn-1]] = true
		}
	}
	return all
}

// inside reports whether a job is in the reservation, by its name or its number.
func (a asked) inside(f []string, numbers map[string]bool) bool {
	return a.certain(f) || f != nil && f[lastColumn] == "" && numbers[f[lastColumn-1]]
}

// readStretch reads a job that has begun; one that runs is told until an instant.
func readStretch(f []string, a asked) (s stretch, begun bool, err error) {
	var errs [5]error
	var ran, cpus int64
	s.ID, errs[0] = strconv.ParseInt(f[0], 10, 64)
	s.Start, errs[1] = instant(f[2])
	s.End, errs[2] = instant(f[3])
	ran, errs[3] = count(f[4], maxElapsed)
	cpus, errs[4] = count(f[5], protocol.MaxCores)
	for _, err := range errs {
		if err != nil {
			return stretch{}, false, err
		}
	}
	if s.cpu, err = cpuTime(f[6]); err != nil {
		return stretch{}, false, err
	}
	if s.Over = !s.End.IsZero(); !s.Over {
		s.End, s.cpu = a.slot.End, 0
	}
	s.Cores = int((cpus + a.threads - 1) / a.threads)
	if begun = !s.Start.IsZero() && !s.Start.After(s.End) && !strings.HasPrefix(f[1], "PENDING"); begun && s.Over {
		s.Idle = max(s.End.Sub(s.Start)-time.Duration(ran)*time.Second, 0)
	}
	ended := strings.HasPrefix(f[1], "COMPLETED") || strings.HasPrefix(f[1], "FAILED") || strings.HasPrefix(f[1], "OUT_OF_ME")
	return s, begun && (s.End.After(s.Start) || ended), nil
}

// count reads a whole number in 0..most.
func count(s string, most int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is no number in 0..%d", s, most)
	}
	return n, nil
}

// cpuTime reads the processor time of a job: a time with or without thousandths.
func cpuTime(s string) (time.Duration, error) {
	whole, part, fine := strings.Cut(s, ".")
	d, err := elapsed(whole)
	if err != nil || !fine {
		return d, err
	}
	ms, err := strconv.ParseUint(part, 10, 10)
	if err != nil || len(part) != 3 {
		return 0, fmt.Errorf("%q is no time", s)
	}
	return d + time.Duration(ms)*time.Millisecond, nil
}
