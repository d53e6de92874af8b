package formats

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/agents/workload"
	"ramp/cmd/ramp/cli"
)

type sliceFlags struct {
	workload.Cut
	length time.Duration
	busy   float64
	out    string
}

func newSWFSlice() *cobra.Command {
	var o sliceFlags
	c := &cobra.Command{
		Use: "slice FILE", Short: "Cut a log by time or number of jobs", Args: cobra.ExactArgs(1),
		Long: `Write part of a log as a log: from a second (--from) or from the first busy week (--busy), for a
time (--length, or up to --to) or a number of jobs (--jobs). The headers are updated.`,
		Example: "  ramp swf slice log.swf.gz --from 0 --length 24h --out day.swf.gz",
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	f := c.Flags()
	f.Int64Var(&o.From, "from", 0, "keep jobs submitted from second `S` of the log")
	f.Int64Var(&o.To, "to", 0, "stop at second `S`; 0: the end of the log")
	cli.DurationVar(f, &o.length, "length", 0, "keep this much, such as 168h, instead of --to")
	f.Float64Var(&o.busy, "busy", 0, "start with the first week whose mean load is at least this share, instead of --from")
	f.IntVar(&o.Skip, "skip", 0, "skip this many jobs")
	f.IntVar(&o.Jobs, "jobs", 0, "keep at most this many jobs; 0: all")
	f.BoolVar(&o.Rebase, "rebase", false, "renumber time so that the first second kept is 0; dates stay true")
	f.StringVar(&o.out, "out", "slice.swf.gz", "write to `FILE`, compressed if it ends in .gz")
	return c
}

func (o sliceFlags) run(c *cobra.Command, path string) error {
	switch {
	case o.To != 0 && o.length != 0:
		return exit.Fail(exit.Usage, "", "give --to or --length, not both")
	case o.From != 0 && o.busy != 0:
		return exit.Fail(exit.Usage, "", "give --from or --busy, not both")
	case sameFile(path, o.out):
		return exit.Fail(exit.Usage, "", "--out would overwrite %s: give another file", path)
	}
	l, _, err := readLog(path)
	if err != nil {
		return err
	}
	if err := o.window(l); err != nil {
		return err
	}
	cut, err := workload.Slice(l, o.Cut)
	if err != nil {
		return exit.Fail(exit.Usage, "", "--%w", err) // its fields are named as the flags are
	}
	if len(cut.Jobs) == 0 {
		return exit.Fail(exit.Usage, "'ramp swf info "+words.ShellWord(path)+"' shows which seconds the log covers", "none of the %d jobs of %s is in the window", len(l.Jobs), path)
	}
	if err := writeLog(o.out, cut); err != nil {
		return err
	}
	v := map[string]any{"file": o.out, "jobs": len(cut.Jobs), "of": len(l.Jobs), "from": o.From, "to": o.To, "rebased": o.Rebase}
	return cli.ShowLine(c, v, "wrote %s: %d of %d jobs, from second %d on", o.out, len(cut.Jobs), len(l.Jobs), o.From)
}

// window turns --busy and --length into seconds.
func (o *sliceFlags) window(l *workload.Log) error {
	if o.busy < 0 || o.busy > 1 {
		return exit.Fail(exit.Usage, "", "--busy %g: want a share from 0 to 1", o.busy)
	}
	if o.busy > 0 {
		at, ok := workload.FirstBusyWeek(l, o.busy)
		if !ok {
			return exit.Fail(exit.Usage, "", "no week of the log has a mean load of %g", o.busy)
		}
		o.From = at
	}
	if o.length < 0 || o.length > 0 && o.length < time.Second {
		return exit.Fail(exit.Usage, "", "--length %v: want a second or more", o.length)
	}
	if o.length > 0 {
		o.To = o.From + int64(o.length.Seconds())
	}
	return nil
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false // opening it reports the error
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
