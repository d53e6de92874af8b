package node

import (
	"errors"
	"testing"

	"ramp/bank/boltfile"
)

// A file that another command has is waited for; a daemon does not give it up.
func TestAnotherCommandIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		has   error
		opens int
	}{
		{&boltfile.InUseError{PID: 1, Command: "ramp user list"}, 2},
		{&boltfile.InUseError{PID: 1, Command: "ramp bank credit ann 5"}, 2},
		{&boltfile.InUseError{PID: 1, Command: "ramp user serve --dir user"}, 1},
		{&boltfile.InUseError{PID: 1, Command: "ramp bank serve"}, 1},
		{&boltfile.InUseError{}, 1},
		{errors.New("disk full"), 1},
	} {
		opens := 0
		_, err := waitingForCommands(func() (struct{}, error) {
			if opens++; opens == 1 {
				return struct{}{}, c.has
			}
			return struct{}{}, nil
		})
		if opens != c.opens || (err == nil) != (opens == 2) {
			t.Errorf("%v: opened %d times, want %d; in the end %v", c.has, opens, c.opens, err)
		}
	}
}
