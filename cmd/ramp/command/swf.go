package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/workload"
)

func newSWF() *cobra.Command {
	c := &cobra.Command{
		Use:   "swf",
		Short: "Look at workload logs, cut them, check them, and make synthetic ones",
		Long: `Workload logs are in the Standard Workload Format 2.2, plain or compressed with gzip.
docs/WORKLOADS.md says what is read and by which rules.`,
	}
	c.AddCommand(newSWFForecast(), newSWFInfo(), newSWFSlice(), newSWFSynth(), newSWFValidate())
	return c
}

// examineLog reads a log and what is odd about it. The error is that the file
// cannot be opened.
func examineLog(path string) (*workload.Log, workload.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, workload.Report{}, fail(exitUsage, "", "workload log: %w", err)
	}
	defer f.Close()
	l, r := workload.Examine(f)
	return l, r, nil
}

// readLog reads a log that can be used; otherwise the error names its first fault.
func readLog(path string) (*workload.Log, workload.Report, error) {
	l, r, err := examineLog(path)
	if err == nil && !r.Usable() {
		err = fail(exitUsage, "'ramp swf validate "+shellWord(path)+"' lists every fault", "workload log %s", faultLine(path, r.Faults[0]))
	}
	return l, r, err
}

// faultLine is a fault for people.
func faultLine(path string, f workload.Fault) string {
	if f.Line == 0 {
		return path + ": " + f.What
	}
	return fmt.Sprintf("%s: line %d: %s", path, f.Line, f.What)
}

// writeLog writes a log, compressed if its name says so.
func writeLog(path string, l *workload.Log) error {
	write := workload.WriteSWF
	if strings.HasSuffix(path, ".gz") {
		write = workload.WriteGzip
	}
	var b bytes.Buffer
	if err := write(&b, l); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	return replaceFile(path, b.Bytes(), 0o644)
}

// logHint says what helps with a workload log that cannot be read.
func logHint(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "'ramp swf synth' makes a synthetic log"
	}
	return "'ramp swf validate FILE' lists every fault of a log"
}
