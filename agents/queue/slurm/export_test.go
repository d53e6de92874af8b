package slurm

import (
	"errors"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Names that tests of the package's parts need.
var (
	Hosts, ReadJobs, ReadReservations = hosts, readJobs, readReservations
	Elapsed                           = elapsed // a time as squeue prints it
)

const (
	Ledger = ledger // the first line that sacct prints
	MaxRan = maxRan
)

// Tasks counts the tasks of an array.
func Tasks(text string, limit int) int { return job{Tasks: text}.tasks(limit) }

// Assembled is the state that follows from nodes and jobs.
func Assembled(nodes, jobs []byte) (message.QueueChanged, error) {
	n, err1 := readNodes("sinfo", nodes, "batch")
	j, err2 := readJobs(jobs)
	if err := errors.Join(err1, err2); err != nil {
		return message.QueueChanged{}, err
	}
	v, err := assemble(time.Unix(1795237725, 0), "batch", queue.MarkOf("a@b"), n, j, nil)
	if err != nil {
		return message.QueueChanged{}, err
	}
	return v.message(), nil
}

// Records are the exit codes of the jobs in squeue's list.
func Records(b []byte) (exits []int, err error) {
	all := map[string][]record{}
	err = readRecords(b, all)
	for _, list := range all {
		for _, r := range list {
			exits = append(exits, r.exit())
		}
	}
	return exits, err
}

// Stretch is one run of a job. Idle is its suspended time; CPU is 0 if not measured.
type Stretch struct {
	Start, End time.Time
	Cores      int
	Idle, CPU  time.Duration
}

// Used sums what ran in a slot.
func Used(slot protocol.Slot, list []Stretch) protocol.Usage {
	all := make([]stretch, len(list))
	for i, s := range list {
		all[i] = stretch{ID: int64(i), Start: s.Start, End: s.End, Cores: s.Cores, Idle: s.Idle, cpu: s.CPU, Over: true}
	}
	return used(slot, all)
}

// ReadLedger reads sacct's list of a reservation's jobs. Squeue has shown those in seen.
func ReadLedger(b []byte, name string, threads int64, slot protocol.Slot, seen ...int64) ([]Stretch, error) {
	a := asked{name: name, slot: slot, threads: threads, seen: map[int64]bool{}}
	for _, id := range seen {
		a.seen[id] = true
	}
	list, err := readLedger(b, a)
	var all []Stretch
	for _, s := range list {
		all = append(all, Stretch{s.Start, s.End, s.Cores, s.Idle, s.cpu})
	}
	return all, err
}
