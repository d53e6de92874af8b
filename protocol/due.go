package protocol

import "time"

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

// Within is a usage that a unit can have had: wall time no longer than its slot,
// and no more core time than its cores have in it, whatever a meter that counts
// in ticks says.
func (u BundleUnit) Within(usage Usage) Usage {
	cores := time.Duration(max(1, u.Slot.Cores))
	usage.Wall = min(max(usage.Wall, 0), u.Slot.Wall())
	usage.Share = min(max(usage.Share, 0), int64(cores)*Core)
	usage.CPU = max(usage.CPU, 0)
	if usage.CPU/cores >= usage.Wall {
		usage.CPU = usage.Wall * cores
	}
	return usage
}
