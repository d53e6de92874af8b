package user

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/order"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
)

// levelFlags are those of 'submit' that concern a federation of sites.
type levelFlags struct {
	level, modules, home string
}

func (l *levelFlags) register(c *cobra.Command, f *runFlags) {
	c.Flags().Func("level", "offer the job to a federation of sites at the priority `LEVEL`, and stay until it has ended; nothing is bought", func(level string) error {
		if level == "" {
			return errors.New("want a level of the federation's rules")
		}
		l.level = level
		cli.EndsWithProgram(c)
		return nil
	})
	c.Flags().StringVar(&l.modules, "modules", "1", "with --level: `N`, or LEAST..MOST: the cores that the job can use")
	c.Flags().StringVar(&l.home, "home", "", "with --level: the `SITE` that auctions the job (default: the first known one of a federation)")
	c.Flags().StringVarP(&f.out, "out", "o", "", "with --level: fetch the files that the program leaves to `DIR`, created if missing")
}

func (l *levelFlags) terms(c *cobra.Command, f *runFlags) (t message.JobTerms, err error) {
	if t.Least, t.Most, err = order.Modules(l.modules); err != nil {
		return t, exit.Fail(exit.Usage, "", "--modules %w", err)
	}
	f.buy.request.Anew()
	if t.Wall, _, err = f.buy.request.Index(); err != nil {
		return t, err
	}
	if t.Wall <= 0 || t.Wall > message.MaxJobWall {
		return t, exit.Fail(exit.Usage, "", "--level: want --wall too, such as 20m, of at most %s", message.MaxJobWall)
	}
	allowed := []string{"level", "modules", "home", "out", "wall", "in", "app", "param", "outputs", "env", "id", "dir", "json", "quiet"}
	c.Flags().Visit(func(x *pflag.Flag) {
		if err == nil && !slices.Contains(allowed, x.Name) && c.InheritedFlags().Lookup(x.Name) == nil {
			err = exit.Fail(exit.Usage, "", "--%s is for purchases; with --level nothing is bought", x.Name)
		}
	})
	return t, err
}

// Pauses between looks at a job that no site has: the first, and the longest. Each is twice the last.
const leastUnsold, mostUnsold = 5 * time.Second, time.Minute

// submitLevel offers a job to a federation, and stays until it has ended.
func submitLevel(c *cobra.Command, args []string, f *runFlags, l *levelFlags) error {
	if err := f.read(c, args); err != nil {
		return err
	}
	terms, err := l.terms(c, f)
	if err != nil {
		return err
	}
	if err := node.CheckOut(f.out); err != nil {
		return err
	}
	program, upload, err := f.run.Program(l.level + " " + l.modules)
	if err != nil {
		return err
	}
	for _, in := range program.Inputs {
		terms.Bytes += in.File.Size
	}
	agent, done, err := cli.OpenUserServing(c)
	if err != nil {
		return err
	}
	defer done()
	if upload != "" {
		cli.ProgressOf(c).Say("uploading " + upload)
	}
	call := control.JobCall{ID: f.buy.firstID(), Name: f.programName(), Home: l.home, Level: l.level, Terms: terms, Program: program}
	w := newWatching(c, agent, call.ID, call.Name)
	fmt.Fprintf(cli.Notes(c), "%s: offering it as job %[2]s; once a site accepts it, 'ramp user auction %[2]s' shows how it stands\n", call.Name, call.ID)
	v, err := offerJob(c, agent, call)
	if err != nil && c.Context().Err() != nil && control.Run.Ask(context.WithoutCancel(c.Context()), agent, control.RunCall{ID: call.ID}, &w.run) == nil {
		return w.stopped(err)
	}
	switch {
	case err != nil:
		return err
	case v.Refused != "":
		return refusedJob(v)
	case v.Site == "":
		return &exit.Error{Code: exit.Failed, InRun: protocol.ExitNever, Err: fmt.Errorf("%s has ended: %s", call.Name, cmp.Or(v.Why, "it was withdrawn"))}
	}
	fmt.Fprintf(cli.Notes(c), "%s: %s has it\n", call.Name, v.Site.Name())
	if err := w.stay(); err != nil {
		return err
	}
	if err := w.fetch(f.out); err != nil {
		return err
	}
	return w.result([]string{w.id})
}

// offerJob waits until a site has a job, and reports meanwhile why none has.
func offerJob(c *cobra.Command, agent *control.Client, call control.JobCall) (v control.JobView, err error) {
	ctx, cancel := context.WithCancel(c.Context())
	var telling sync.WaitGroup
	telling.Go(func() {
		last := ""
		for pause := leastUnsold; agents.Pause(ctx, pause); pause = min(2*pause, mostUnsold) {
			var now control.JobView
			if control.JobShow.Ask(ctx, agent, control.IDCall{ID: call.ID}, &now) != nil {
				continue
			}
			if why := order.Unsold(now); why != "" && why != last {
				fmt.Fprintf(cli.Notes(c), "%s: %s\n", call.Name, why)
				last = why
			}
		}
	})
	err = control.JobSubmit.Ask(ctx, agent, call, &v)
	cancel()
	telling.Wait()
	return v, err
}

// refusedJob is the error of a job that its home does not take.
func refusedJob(v control.JobView) error {
	code := exit.Failed
	switch v.Refused {
	case protocol.CodeForbidden:
		code = exit.Refused
	case protocol.CodeMalformed, protocol.CodeMismatch, protocol.CodeSize:
		code = exit.Usage
	}
	return exit.Fail(code, "", "%s: %s", v.Home.Name(), v.Why)
}

func newUserAuction() *cobra.Command {
	return &cobra.Command{
		Use: "auction ID", Short: "Show who bid for a job of a federation, who won, and how it stands", Args: cobra.ExactArgs(1), GroupID: "run", ValidArgsFunction: cli.RunID,
		Long: `Show the auctions of a job that 'ramp user submit --level' offered to a federation: who bid
what and when, who won, which jobs of lower levels it would displace, and how the job stands
now. Bids are in modules: free ones count fully, those of jobs to be suspended less, and the
time to bring the input is subtracted.`,
		Example: "  ramp user auction p9604b95",
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUser, wholeRun, args[0], func(agent *control.Client, id string) error {
				var v control.JobView
				if err := control.JobShow.Ask(c.Context(), agent, control.IDCall{ID: id}, &v); err != nil {
					return err
				}
				return cli.Show(c, v, func(w io.Writer) { order.WriteJob(w, v, cli.Table) })
			})
		},
	}
}
