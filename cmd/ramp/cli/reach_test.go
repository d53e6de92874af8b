package cli

import (
	"errors"
	"testing"

	"ramp/bank/boltfile"
)

// A daemon that takes its file between a command's two looks is waited for; a command that has the
// file, or any other error, is not.
func TestADaemonThatIsAboutToListenIsWaitedFor(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	for what, x := range map[string]struct {
		first error
		calls int
		want  error
	}{
		"a daemon":  {&boltfile.InUseError{PID: 1, Command: "ramp user serve --dir user"}, 3, nil},
		"a command": {&boltfile.InUseError{PID: 1, Command: "ramp user list"}, 1, &boltfile.InUseError{}},
		"no lock":   {other, 1, other},
	} {
		calls := 0
		err := untilListening(func() error {
			if calls++; calls == 3 {
				return nil
			}
			return x.first
		})
		if calls != x.calls || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %d calls, %v", what, calls, err)
		}
	}
}
