package formats

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/agents/workload"
)

func NewSWF() *cobra.Command {
	c := &cobra.Command{
		Use: "swf", Short: "Inspect, cut, check and synthesize workload logs", GroupID: "formats",
		Long: `Workload logs are in the Standard Workload Format 2.2, plain or compressed with gzip.
docs/WORKLOADS.md describes how they are read.`,
	}
	c.AddCommand(newSWFForecast(), newSWFInfo(), newSWFSlice(), newSWFSynth(), newSWFValidate())
	return c
}

// examineLog reads a log, and reports its faults and oddities. It only fails if it cannot open the
// file.
func examineLog(path string) (*workload.Log, workload.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, workload.Report{}, exit.Fail(exit.Usage, "", "workload log: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, workload.Report{}, exit.Fail(exit.Usage, "", "workload log %s: %w", path, syscall.EISDIR)
	}
	l, r := workload.Examine(f)
	return l, r, nil
}

// readLog reads a usable log; otherwise the error names its first fault.
func readLog(path string) (*workload.Log, workload.Report, error) {
	l, r, err := examineLog(path)
	if err == nil && !r.Usable() {
		err = exit.Fail(exit.Usage, "'ramp swf validate "+words.ShellWord(path)+"' lists every fault", "workload log %s", faultLine(path, r.Faults[0]))
	}
	return l, r, err
}

func faultLine(path string, f workload.Fault) string {
	if f.Line == 0 {
		return path + ": " + f.What
	}
	return fmt.Sprintf("%s: line %d: %s", path, f.Line, f.What)
}

// writeLog writes a log, compressed if the name ends in .gz.
func writeLog(path string, l *workload.Log) error {
	write := workload.WriteSWF
	if strings.HasSuffix(path, ".gz") {
		write = workload.WriteGzip
	}
	var b bytes.Buffer
	if err := write(&b, l); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	return config.ReplaceFile(path, b.Bytes(), 0o644)
}
