package command

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/workload"
)

// sliceFlags are the flags of 'ramp swf slice'.
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
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	f := c.Flags()
	f.Int64Var(&o.From, "from", 0, "first second of the log to keep, by submit time")
	f.Int64Var(&o.To, "to", 0, "second at which to stop; 0: the end of the log")
	durationVar(f, &o.length, "length", 0, "how much to keep, instead of --to: 168h")
	f.Float64Var(&o.busy, "busy", 0, "begin with the first week whose mean load is at least this share, instead of --from")
	f.IntVar(&o.Skip, "skip", 0, "jobs to skip")
	f.IntVar(&o.Jobs, "jobs", 0, "jobs to keep at most; 0: all")
	f.BoolVar(&o.Rebase, "rebase", false, "make the first second kept second 0")
	f.StringVar(&o.out, "out", "slice.swf.gz", "file to write; compressed if it ends in .gz")
	return c
}

func (o sliceFlags) run(c *cobra.Command, path string) error {
	switch {
	case o.To != 0 && o.length != 0:
		return fail(exitUsage, "", "slice: want --to or --length, not both")
	case o.From != 0 && o.busy != 0:
		return fail(exitUsage, "", "slice: want --from or --busy, not both")
	case sameFile(path, o.out):
		return fail(exitUsage, "", "slice: %s would be written over itself: want another --out", path)
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
		return fail(exitUsage, "", "%w", err)
	}
	if len(cut.Jobs) == 0 {
		return fail(exitUsage, "'ramp swf info "+shellWord(path)+"' says which seconds the log covers", "slice: none of the %d jobs of %s is in the window", len(l.Jobs), path)
	}
	if err := writeLog(o.out, cut); err != nil {
		return err
	}
	v := map[string]any{"file": o.out, "jobs": len(cut.Jobs), "of": len(l.Jobs), "from": o.From, "to": o.To, "rebased": o.Rebase}
	return said(c, v, "wrote %s: %d of %d jobs, from second %d on", o.out, len(cut.Jobs), len(l.Jobs), o.From)
}

// window turns --busy and --length into seconds.
func (o *sliceFlags) window(l *workload.Log) error {
	if o.busy < 0 || o.busy > 1 {
		return fail(exitUsage, "", "--busy: %g, want a share in 0..1", o.busy)
	}
	if o.busy > 0 {
		at, ok := workload.FirstBusyWeek(l, o.busy)
		if !ok {
			return fail(exitUsage, "", "no week of the log has a mean load of %g", o.busy)
		}
		o.From = at
	}
	if o.length < 0 || o.length > 0 && o.length < time.Second {
		return fail(exitUsage, "", "--length: %v, want a second or more", o.length)
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
		return false // what is wrong is told when it is opened
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
