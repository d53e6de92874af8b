package swf

import (
	"bufio"
	"fmt"
	"os"

	"ramp/agents/workload"
)

// Load reads a log from a file, which may be compressed with gzip.
func Load(path string) (*workload.Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("workload log: %w", err)
	}
	defer f.Close()
	plain, err := workload.Plain(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("workload log %s: %w", path, err)
	}
	log, err := workload.ReadSWF(plain)
	if err != nil {
		return nil, fmt.Errorf("workload log %s: %w", path, err)
	}
	return log, nil
}
