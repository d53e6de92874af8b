package slurm

import (
	"time"

	"ramp/agents/queue"
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
