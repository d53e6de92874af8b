package slurm

import (
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// What tests look at from outside.
var (
	Hosts            = hosts
	ReadJobs         = readJobs
	ReadReservations = readReservations
)

// Tasks counts the tasks of an array.
func Tasks(text string, limit int) int { return job{Tasks: text}.tasks(limit) }

// Assembled is the state that nodes and jobs make.
func Assembled(nodes, jobs []byte) (message.QueueChanged, error) {
	n, err := readNodes("sinfo", nodes, "batch")
	if err != nil {
		return message.QueueChanged{}, err
	}
	j, err := readJobs(jobs)
	if err != nil {
		return message.QueueChanged{}, err
	}
	v, err := assemble(time.Unix(1795237725, 0), "batch", queue.MarkOf("a@b"), n, j, nil)
	if err != nil {
		return message.QueueChanged{}, err
	}
	return v.told(), nil
}

// Records are the names that squeue's list has.
func Records(b []byte) (map[string]int, error) {
	all := map[string][]record{}
	if err := readRecords(b, all); err != nil {
		return nil, err
	}
	n := map[string]int{}
	for name, list := range all {
		n[name] = len(list)
	}
	return n, nil
}

// Elapsed reads a time as squeue prints it.
var Elapsed = elapsed

// Stretch is one running of a job. Idle is how much of it the job was suspended, and
// CPU what it used; 0: not measured.
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

// ReadLedger is what sacct says of the jobs in a reservation, in a slot, of which squeue
// has shown some.
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

// Ledger is the first line of what sacct prints.
const Ledger = ledger

// MaxRan bounds the stretches of a slot that are remembered.
const MaxRan = maxRan
