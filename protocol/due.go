package protocol

import (
	"math/bits"
	"time"
)

// Delivered reports whether a seller has delivered what its slot was bought for,
// so that a bundle that is paid on completion is paid (000): not if the machine
// lost the job, or the job said that it failed. What its owner killed, and what
// used its slot up, had its cores.
func (s JobStatus) Delivered() bool {
	return s.State != JobLost && (s.State != JobExited || s.Exit == 0)
}

// Due is what a unit of a bundle costs once its job has stopped: 0..Cost. On
// completion that is everything or nothing; metered it is what the tariff asks
// for the usage, which must be valid, and never more than the ceiling.
func (u BundleUnit) Due(mode Mode, success bool, usage Usage) Credits {
	if mode != ModeMetered {
		if success {
			return u.Cost
		}
		return 0
	}
	due, err := u.Tariff.Due(usage)
	if err != nil {
		return u.Cost // more than fits is more than the ceiling
	}
	kept, _ := Prepaid(u.Cost, due)
	return kept
}

// Within is a usage that a unit can be charged for: wall time no longer than its
// slot and its time limit, after which its share of the core time counts, and no
// more core time than its cores have in it, whatever a meter that counts in ticks
// says.
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
