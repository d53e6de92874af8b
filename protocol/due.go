package protocol

import (
	"math/bits"
	"time"
)

// Exit codes of jobs that have none of their own (JOBS.md).
const (
	ExitExpired = 124 // it was ended with its slot
	ExitNever   = 125 // it never ran, or was lost
	ExitKilled  = 137 // its owner ended it
)

// ExitCode is the exit code of a job that is over.
func (s JobStatus) ExitCode() int {
	switch s.State {
	case JobExited:
		return s.Exit
	case JobKilled:
		return ExitKilled
	case JobExpired:
		return ExitExpired
	}
	return ExitNever
}

// Delivered reports whether a job had its cores, so that they must be paid. Only a
// machine that loses a job has not delivered; the exit code is the buyer's own.
func (s JobStatus) Delivered() bool { return s.State != JobLost }

// Succeeded reports whether a job had its cores and did not exit with an error. One
// that its owner killed, or that used up its slot, has succeeded.
func (s JobStatus) Succeeded() bool { return s.Delivered() && (s.State != JobExited || s.Exit == 0) }

// Due is the price of a unit once its job has stopped: 0..Cost. On completion it is
// everything or nothing; metered, the tariff computes it from the usage, which must
// be valid, up to the ceiling, and at least Tariff.Least if the seller has delivered.
func (u BundleUnit) Due(mode Mode, delivered bool, usage Usage) Credits {
	if mode != ModeMetered {
		if delivered {
			return u.Cost
		}
		return 0
	}
	due, err := u.Tariff.Due(usage)
	if err != nil {
		return u.Cost // an overflow is above the ceiling
	}
	if delivered {
		due = max(due, u.Tariff.Least)
	}
	kept, _ := Prepaid(u.Cost, due)
	return kept
}

// Owes reports whether a seller's record may claim an amount. If the job failed, the
// seller itself says whether it has delivered.
func (u BundleUnit) Owes(due Credits, mode Mode, success bool, usage Usage) bool {
	return due == u.Due(mode, true, usage) || !success && due == u.Due(mode, false, usage)
}

// Within limits a usage to what a unit can be charged for: at most the wall time of its slot and
// its time limit, with the same share of the core time, and no more core time than its cores have
// in that wall time. Meters that count in ticks can exceed it.
func (u BundleUnit) Within(usage Usage) Usage {
	cores, most := time.Duration(max(1, u.Slot.Cores)), u.Slot.Wall()
	if limit := u.Tariff.TimeLimit; limit > 0 {
		most = min(most, limit)
	}
	usage.CPU = max(usage.CPU, 0)
	if usage.Wall > most {
		hi, lo := bits.Mul64(uint64(usage.CPU), uint64(most))
		share, _ := bits.Div64(hi, lo, uint64(usage.Wall)) // less than CPU: most is less than Wall
		usage.CPU, usage.Wall = time.Duration(share), most
	}
	usage.Wall = max(usage.Wall, 0)
	usage.Share = min(max(usage.Share, 0), int64(cores)*Core)
	if usage.CPU/cores >= usage.Wall {
		usage.CPU = usage.Wall * cores
	}
	return usage
}
