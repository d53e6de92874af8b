package command

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/queue/swf"
	"ramp/agents/workload"
)

func newSWF() *cobra.Command {
	c := &cobra.Command{
		Use:   "swf",
		Short: "Look at workload logs, and make synthetic ones",
		Long: `Workload logs are in the Standard Workload Format 2.2, plain or compressed with gzip.

` + exitHelp,
	}
	c.AddCommand(newSWFInfo(), newSWFSynth())
	return c
}

// logInfo is what a log says about itself.
type logInfo struct {
	File     string  `json:"file"`
	Jobs     int     `json:"jobs"`
	Cores    int     `json:"cores"`
	First    int64   `json:"first_start_s"`
	Last     int64   `json:"last_end_s"`
	MeanLoad float64 `json:"mean_load"`
}

func newSWFInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info FILE...", Short: "Say how long, how large and how busy logs are", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			list := []logInfo{}
			for _, path := range args {
				l, err := swf.Load(path)
				if err != nil {
					return fail(exitUsage, "", "%w", err)
				}
				v := workload.NewView(l)
				first, last := v.Span()
				list = append(list, logInfo{path, len(l.Jobs), l.Capacity(), first, last, v.Load(first, last)})
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"file", "jobs", "cores", "days", "mean load"}}
			for _, i := range list {
				rows = append(rows, []string{i.File, fmt.Sprint(i.Jobs), fmt.Sprint(i.Cores), fmt.Sprintf("%.1f", float64(i.Last-i.First)/86400), fmt.Sprintf("%.2f", i.MeanLoad)})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
}

// The default logs of the demonstration: one per resource, long enough for the
// latest start that it asks for, and busy as large machines are. None is chosen:
// the seed of a resource is its place in the list, and so is its hour of the day.
const (
	demoLogHours = 96
	demoLogLoad  = 0.75
	demoLogBase  = 24 // hours played before the market starts, so that a queue has formed
)

// demoBase is the second of a default log at which the market starts.
func demoBase(i int) int64 { return int64(demoLogBase+(i*7)%24) * 3600 }

// demoLog makes the default log of a resource.
func demoLog(i int) (*workload.Log, error) {
	s := demoSites[i]
	return workload.Synthesize(workload.Synthesis{
		Name: s.name + " (synthetic)", Cores: machineCores[s.machine], Duration: demoLogHours * 3600,
		Load: demoLogLoad, Models: fourStreams(),
	}, rand.New(rand.NewPCG(uint64(i+1), 2003)))
}

// fourStreams are four streams of all jobs: one alone leaves a machine idle much
// more often than real ones are.
func fourStreams() []workload.Model {
	return []workload.Model{workload.Typeless(), workload.Typeless(), workload.Typeless(), workload.Typeless()}
}

func newSWFSynth() *cobra.Command {
	var s workload.Synthesis
	var seed uint64
	var out, demo string
	var length time.Duration
	c := &cobra.Command{
		Use: "synth", Short: "Make a synthetic log (Lublin and Feitelson 2003, EASY played over it)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if demo != "" {
				return writeDemoLogs(c, demo)
			}
			s.Duration = int64(length.Seconds())
			s.Models = fourStreams()
			if err := s.Validate(); err != nil {
				return fail(exitUsage, "", "%w", err)
			}
			l, err := workload.Synthesize(s, rand.New(rand.NewPCG(seed, 2003)))
			if err != nil {
				return fail(exitUsage, "", "%w", err)
			}
			if err := writeLog(out, l); err != nil {
				return err
			}
			return said(c, map[string]any{"file": out, "jobs": len(l.Jobs), "seed": seed}, "wrote %s: %d jobs, seed %d", out, len(l.Jobs), seed)
		},
	}
	f := c.Flags()
	f.StringVar(&s.Name, "name", "synthetic", "name of the machine, for the header")
	f.IntVar(&s.Cores, "cores", 1024, "cores of the machine")
	f.DurationVar(&length, "length", 72*time.Hour, "how long jobs arrive")
	f.Float64Var(&s.Load, "load", 0.7, "share of the machine that the jobs ask for; 0: as the model says")
	f.Uint64Var(&seed, "seed", 1, "seed; the same seed makes the same log")
	f.StringVar(&out, "out", "synthetic.swf.gz", "file to write; compressed if it ends in .gz")
	f.StringVar(&demo, "demo", "", "write the default logs of 'ramp demo' to this directory instead")
	return c
}

// writeDemoLogs makes the logs that 'ramp demo' replays by default.
func writeDemoLogs(c *cobra.Command, dir string) error {
	for i, s := range demoSites {
		l, err := demoLog(i)
		if err != nil {
			return err
		}
		if err := writeLog(filepath.Join(dir, s.name+".swf.gz"), l); err != nil {
			return err
		}
		fmt.Fprintf(stderr(c), "%s: %d jobs\n", s.name, len(l.Jobs))
	}
	return nil
}

// writeLog writes a log, compressed if its name says so.
func writeLog(path string, l *workload.Log) error {
	var b bytes.Buffer
	if strings.HasSuffix(path, ".gz") {
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := workload.WriteSWF(w, l); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	} else if err := workload.WriteSWF(&b, l); err != nil {
		return err
	}
	return replaceFile(path, b.Bytes(), 0o644)
}
