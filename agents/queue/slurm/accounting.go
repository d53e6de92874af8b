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
	"ramp/protocol"
)

// The columns of sacct. The name of the reservation is the last, since only it can
// contain the separator.
const ledger = "JobIDRaw|State|Start|End|ElapsedRaw|AllocCPUS|TotalCPU|ReservationId|Reservation"

// lastColumn is the index of the name.
const lastColumn = 8

// maxElapsed bounds the seconds that a job ran.
const maxElapsed = maxDays * 24 * 60 * 60

// accounted returns the jobs of the accounts that may use a reservation, in its slot,
// as Slurm's accounting knows them.
func (c cluster) accounted(a asked, users []string) ([]stretch, error) {
	b, err := c.run("sacct", "--allusers", "--duplicates", "--parsable2", "--user="+strings.Join(users, ","),
		"--starttime="+a.slot.Start.UTC().Format(stamp), "--endtime="+a.slot.End.UTC().Format(stamp), "--format="+strings.ReplaceAll(ledger, "|", ","))
	if err != nil {
		return nil, err
	}
	return readLedger(b, a)
}

type asked struct {
	name    string // of the reservation
	slot    protocol.Slot
	threads int64          // of a core
	seen    map[int64]bool // jobs that squeue has shown in it
}

// noAccounting reports whether the cluster has no accounting: Slurm runs without it, or
// sacct is missing.
func noAccounting(err error) bool {
	text := strings.ToLower(err.Error())
	disabled := []string{"accounting storage is disabled", "no such file or directory", "not found"}
	return slices.ContainsFunc(disabled, func(words string) bool { return strings.Contains(text, words) })
}

// readLedger reads what sacct prints about the jobs in one reservation; the jobs' sums
// include their steps. Jobs of others may be malformed, but a list without its heading
// or with a cut-off end is an error.
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
			return nil, fmt.Errorf("sacct: %q is not a job: %w", queue.OneLine(line[:min(len(line), 120)]), err)
		}
		if begun {
			list = append(list, s)
		}
	}
	return list, nil
}

// columnsOf splits a line into columns; nil: it is a step, or malformed.
func columnsOf(line []byte) []string {
	f := strings.SplitN(strings.TrimSuffix(string(line), "\n"), "|", lastColumn+1)
	if len(f) <= lastColumn || strings.Contains(f[0], ".") {
		return nil
	}
	return f
}

// certain reports whether a job is surely in the reservation. Accounting forgets the
// name for a job that began in the same second as the reservation.
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

// numbers returns the accounting's numbers of the reservation, from jobs surely in it.
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

// readStretch reads a job that has begun; a running one counts until the slot's end.
func readStretch(f []string, a asked) (s stretch, begun bool, err error) {
	var errs [5]error
	var ran, cpus int64
	s.ID, errs[0] = strconv.ParseInt(f[0], 10, 64)
	s.Start, errs[1] = instant(f[2])
	s.End, errs[2] = instant(f[3])
	ran, errs[3] = count(f[4], maxElapsed)
	cpus, errs[4] = count(f[5], protocol.MaxCores)
	if err := cmp.Or(errs[:]...); err != nil {
		return stretch{}, false, err
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
		return 0, fmt.Errorf("%q: want a number in 0..%d", s, most)
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
		return 0, fmt.Errorf("%q is not a time", s)
	}
	return d + time.Duration(ms)*time.Millisecond, nil
}
