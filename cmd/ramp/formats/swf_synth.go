package formats

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"ramp/agents/workload/published"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/workload"
	"ramp/cmd/ramp/cli"
)

// The default logs of the demonstration: one per resource, long enough for the latest start that it
// asks for, and as busy as large machines are. They are not hand-picked: the position of a resource
// in the list is its seed, and gives its hour of the day.
const (
	demoLogHours = 96
	demoLogLoad  = 0.75
)

// demoLog makes the default log of a resource.
func demoLog(i int) (*workload.Log, error) {
	s := published.Resources()[i]
	return workload.Synthesize(workload.Synthesis{
		Name: s.Name + " (synthetic)", Cores: coresOf(s.Machine), Duration: demoLogHours * 3600,
		Load: demoLogLoad, Models: streams(workload.Typeless, synthStreams),
	}, rand.New(rand.NewPCG(uint64(i+1), 2003)))
}

// coresOf is the size of a machine of the source's experiment (002 table 1).
func coresOf(machine string) int {
	for _, m := range published.Machines() {
		if m.Name == machine {
			return m.Cores
		}
	}
	panic("no machine " + machine) // a test checks that every resource has one
}

// synthStreams is how many independent streams a synthetic log has by default: a single one leaves a
// machine idle much more often than real machines are.
const synthStreams = 4

func streams(model func() workload.Model, n int) []workload.Model {
	var list []workload.Model
	for range n {
		list = append(list, model())
	}
	return list
}

func modelsOf(name string, n int) ([]workload.Model, error) {
	if n < 1 || n > workload.MaxModels {
		return nil, fmt.Errorf("--streams %d: want 1..%d", n, workload.MaxModels)
	}
	switch name {
	case "all":
		return streams(workload.Typeless, n), nil
	case "batch":
		return streams(workload.Batch, n), nil
	case "interactive":
		return streams(workload.Interactive, n), nil
	}
	return nil, fmt.Errorf("--model %q: want all, batch or interactive", name)
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
		Use: "synth", Short: "Generate a synthetic log", Args: cobra.NoArgs,
		Long: `Generate a synthetic log by the model of Lublin and Feitelson (2003), scheduled with EASY
backfilling. The same seed gives the same log. Its dates mean nothing.`,
		Example: "  ramp swf synth --cores 64 --length 24h --seed 7 --out small.swf.gz",
		RunE: func(c *cobra.Command, _ []string) error {
			if o.demos != "" {
				return writeDemoLogs(c, o.demos)
			}
			return o.run(c)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "synthetic", "`NAME` of the machine, for the header")
	f.IntVar(&o.Cores, "cores", 1024, "cores of the machine")
	cli.DurationVar(f, &o.length, "length", 72*time.Hour, "how long jobs keep arriving")
	f.Float64Var(&o.Load, "load", 0.7, "share of the machine that the jobs ask for; 0: as the model has it")
	f.StringVar(&o.model, "model", "all", "`KIND` of jobs: all, batch or interactive")
	cli.Choices(c, "model", "all", "batch", "interactive")
	f.IntVar(&o.streams, "streams", synthStreams, "independent streams of jobs, 1..8; a single one leaves the machine idle for a day now and then")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the random numbers")
	f.StringVar(&o.out, "out", "synthetic.swf.gz", "write to `FILE`, compressed if it ends in .gz")
	f.StringVar(&o.demos, "demo", "", "write the default logs of 'ramp demo' to `DIR` instead")
	return c
}

func (o synthFlags) run(c *cobra.Command) error {
	models, err := modelsOf(o.model, o.streams)
	if err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	o.Models, o.Duration = models, int64(o.length.Seconds())
	l, err := workload.Synthesize(o.Synthesis, rand.New(rand.NewPCG(o.seed, 2003)))
	if err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	if err := writeLog(o.out, l); err != nil {
		return err
	}
	return cli.ShowLine(c, map[string]any{"file": o.out, "jobs": len(l.Jobs), "seed": o.seed}, "wrote %s: %d jobs, seed %d", o.out, len(l.Jobs), o.seed)
}

// writeDemoLogs makes the logs that 'ramp demo' replays by default.
func writeDemoLogs(c *cobra.Command, dir string) error {
	for i, s := range published.Resources() {
		l, err := demoLog(i)
		if err != nil {
			return err
		}
		if err := writeLog(filepath.Join(dir, s.Name+".swf.gz"), l); err != nil {
			return err
		}
		fmt.Fprintf(cli.Stderr(c), "%s: %d jobs\n", s.Name, len(l.Jobs))
	}
	return nil
}
