package workload_test

import (
	"errors"
	"testing"

	"ramp/agents/workload"
)

// First of the package's tests: the memory is fresh then, and never touched.
func TestLogIsBounded(t *testing.T) {
	l := &workload.Log{Jobs: make([]workload.Job, workload.MaxJobs)}
	if err := l.AddLine(line); !errors.Is(err, workload.ErrFormat) {
		t.Errorf("job %d: got %v, want ErrFormat", workload.MaxJobs+1, err)
	}
}
