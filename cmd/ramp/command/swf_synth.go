package command

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/workload"
	"ramp/testdata"
)

// The default logs of the demonstration: one per resource, long enough for the
// latest start that it asks for, and busy as large machines are. None is chosen:
// the seed of a resource is its place in the list, and so is its hour of the day.
const (
	demoLogHours = 96
	demoLogLoad  = 0.75
)

// demoLog makes the default log of a resource.
func demoLog(i int) (*workload.Log, error) {
	s := demoSites()[i]
	return workload.Synthesize(workload.Synthesis{
		Name: s.Name + " (synthetic)", Cores: coresOf(s.Machine), Duration: demoLogHours * 3600,
		Load: demoLogLoad, Models: fourStreams(),
	}, rand.New(rand.NewPCG(uint64(i+1), 2003)))
}

// coresOf is the size of a machine of the source's experiment (002 table 1).
func coresOf(machine string) int {
	for _, m := range testdata.Machines() {
		if m.Name == machine {
			return m.Cores
		}
	}
	panic("no machine " + machine) // a test holds that every resource has one
}

// fourStreams are four streams of all jobs: one alone leaves a machine idle much
// more often than real ones are.
func fourStreams() []workload.Model { return streams(workload.Typeless, synthStreams) }

// synthStreams is how many independent streams a synthetic log has by default.
const synthStreams = 4

func streams(model func() workload.Model, n int) []workload.Model {
	var list []workload.Model
	for range n {
		list = append(list, model())
	}
	return list
}

// modelsOf are the streams that the flags ask for.
func modelsOf(name string, n int) ([]workload.Model, error) {
	if n < 1 || n > workload.MaxModels {
		return nil, fmt.Errorf("--streams: %d, want 1..%d", n, workload.MaxModels)
	}
	switch name {
	case "all":
		return streams(workload.Typeless, n), nil
	case "batch":
		return streams(workload.Batch, n), nil
	case "interactive":
		return streams(workload.Interactive, n), nil
	}
	return nil, fmt.Errorf("--model: %q, want all, batch or interactive", name)
}

// synthFlags are the flags of 'ramp swf synth'.
type synthFlags struct {
	workload.Synthesis
	length     time.Duration
	seed       uint64
	model      string
	streams    int
	out, demos string
}

func newSWFSynth() *cobra.Command {
	var o synthFlags
	c := &cobra.Command{
		Use: "synth", Short: "Make a synthetic log (Lublin and Feitelson 2003, EASY played over it)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.demos != "" {
				return writeDemoLogs(c, o.demos)
			}
			return o.run(c)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "synthetic", "name of the machine, for the header")
	f.IntVar(&o.Cores, "cores", 1024, "cores of the machine")
	durationVar(f, &o.length, "length", 72*time.Hour, "how long jobs arrive")
	f.Float64Var(&o.Load, "load", 0.7, "share of the machine that the jobs ask for; 0: as the model says")
	f.StringVar(&o.model, "model", "all", "jobs to make: all, batch or interactive")
	f.IntVar(&o.streams, "streams", synthStreams, "independent streams of jobs, 1..8")
	f.Uint64Var(&o.seed, "seed", 1, "seed; the same seed makes the same log")
	f.StringVar(&o.out, "out", "synthetic.swf.gz", "file to write; compressed if it ends in .gz")
	f.StringVar(&o.demos, "demo", "", "write the default logs of 'ramp demo' to this directory instead")
	return c
}

func (o synthFlags) run(c *cobra.Command) error {
	models, err := modelsOf(o.model, o.streams)
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	o.Models, o.Duration = models, int64(o.length.Seconds())
	l, err := workload.Synthesize(o.Synthesis, rand.New(rand.NewPCG(o.seed, 2003)))
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	if err := writeLog(o.out, l); err != nil {
		return err
	}
	return said(c, map[string]any{"file": o.out, "jobs": len(l.Jobs), "seed": o.seed}, "wrote %s: %d jobs, seed %d", o.out, len(l.Jobs), o.seed)
}

// writeDemoLogs makes the logs that 'ramp demo' replays by default.
func writeDemoLogs(c *cobra.Command, dir string) error {
	for i, s := range demoSites() {
		l, err := demoLog(i)
		if err != nil {
			return err
		}
		if err := writeLog(filepath.Join(dir, s.Name+".swf.gz"), l); err != nil {
			return err
		}
		fmt.Fprintf(stderr(c), "%s: %d jobs\n", s.Name, len(l.Jobs))
	}
	return nil
}
