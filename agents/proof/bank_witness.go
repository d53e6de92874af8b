package proof

import (
	"errors"

	"ramp/bank/audit"
	"ramp/protocol/contract"
)

// AlarmFile names the kind of an alarm in the names of its files.
func AlarmFile(err error) string {
	names := []struct {
		err  error
		name string
	}{{audit.ErrFork, "fork"}, {audit.ErrShrunk, "shrunk"}, {audit.ErrStale, "stale"}, {contract.ErrSignature, "forged"}}
	for _, n := range names {
		if errors.Is(err, n.err) {
			return n.name
		}
	}
	return "unproven"
}
