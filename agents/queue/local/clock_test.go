package local_test

import (
	"os"
	"strings"
	"testing"
)

// A job has its slot by a clock that nobody sets: the machine's own is read where the keeper begins,
// and for two waits that do not touch the job.
func TestAJobHasItsSlotWhateverBecomesOfTheClock(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("keeper.go")
	if err != nil {
		t.Fatal(err)
	}
	for call, most := range map[string]int{"time.Now()": 3, "time.Since(": 0, "time.Until(": 0, "k.look(now)": 0} {
		if n := strings.Count(string(b), call); n > most {
			t.Errorf("keeper.go has %s %d times, want at most %d", call, n, most)
		}
	}
}
