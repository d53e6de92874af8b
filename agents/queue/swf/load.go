package swf

import (
	"fmt"
	"os"
	"strings"

	"ramp/agents/workload"
)

// Load reads a log from a file, which may be compressed with gzip. It accepts logs that
// workload.Examine finds usable, and returns their oddities; otherwise the error names
// the file and the first wrong line.
func Load(path string) (*workload.Log, []workload.Note, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("workload log: %w", err)
	}
	defer f.Close()
	log, report := workload.Examine(f)
	if report.Usable() {
		return log, report.Notes, nil
	}
	return nil, nil, fault(path, report)
}

// fault describes the first fault, and counts the others.
func fault(path string, r workload.Report) error {
	first, more := r.Faults[0], ""
	if n := len(r.Faults) - 1 + r.More; n > 0 {
		more = fmt.Sprintf(" (and %d more invalid lines)", n)
	}
	if first.Line == 0 {
		return fmt.Errorf("workload log %s: %s%s", path, first.What, more)
	}
	return fmt.Errorf("workload log %s: line %d: %s%s", path, first.Line, first.What, more)
}

// Told describes a log's oddities, and how the reader treats them, in one line; empty if
// there are none.
func Told(notes []workload.Note) string {
	var list []string
	for _, n := range notes {
		list = append(list, n.String())
	}
	return strings.Join(list, "; ")
}
