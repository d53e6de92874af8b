package exit_test

import (
	"errors"
	"testing"

	"ramp/agents/exit"
)

// No code of a command that runs a program is one that programs usually end with.
func TestCodesBesideAProgramAreItsOwn(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]int{exit.Failed: 70, exit.Usage: 64, exit.Nothing: 69, exit.Refused: 77, exit.Unreachable: 75, exit.Disk: 74} {
		if got := exit.InRun(exit.Silent(code), code); got != want {
			t.Errorf("%d becomes %d, want %d", code, got, want)
		}
	}
	for code := 1; code < 256; code++ {
		if got := exit.InRun(exit.OfProgram(code), code); got != code {
			t.Errorf("a program's code %d becomes %d", code, got)
		}
	}
	if exit.OfProgram(0) != nil || exit.InRun(nil, 0) != 0 || exit.InRun(errors.New("x"), 1) != exit.RunFailed {
		t.Error("success, or an error without a code, is wrong")
	}
}
