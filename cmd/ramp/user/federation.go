package user

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
)

// levelFlags are those of 'submit' that concern a federation of sites.
type levelFlags struct {
	level, modules, home string
}

func (l *levelFlags) register(c *cobra.Command, f *runFlags) {
	c.Flags().StringVar(&l.level, "level", "", "offer the job to a federation of sites at the priority `LEVEL`, and stay until it has ended; nothing is bought")
	c.Flags().StringVar(&l.modules, "modules", "1", "with --level: `N`, or LEAST..MOST: the cores that the job can use")
	c.Flags().StringVar(&l.home, "home", "", "with --level: the `SITE` that auctions the job (default: the first known one of a federation)")
	c.Flags().StringVarP(&f.out, "out", "o", "", "with --level: fetch the files that the program leaves to `DIR`, created if missing")
}

// terms are the terms of a job by its flags.
func (l *levelFlags) terms(c *cobra.Command, f *runFlags) (t message.JobTerms, err error) {
	least, most, several := strings.Cut(l.modules, "..")
	if !several {
		most = least
	}
	var e1, e2 error
	t.Least, e1 = strconv.Atoi(least)
	t.Most, e2 = strconv.Atoi(most)
	if e1 != nil || e2 != nil || t.Least < 1 || t.Most < t.Least || t.Most > message.MaxModules {
		return t, exit.Fail(exit.Usage, "", "--modules %q: want N, or LEAST..MOST such as 2..4", protocol.Clip(l.modules))
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
	fmt.Fprintf(cli.Notes(c), "%s: offered as job %s\n", call.Name, call.ID)
	var v control.JobView
	if err := control.JobSubmit.Ask(c.Context(), agent, call, &v); err != nil {
		return err
	}
	if v.Refused != "" {
		return refusedJob(v)
	}
	if v.Site == "" {
		return exit.Fail(exit.Failed, "", "%s has ended: %s", call.Name, v.Why)
	}
	fmt.Fprintf(cli.Notes(c), "%s: %s has it, after %s\n", call.Name, v.Site.Name(), words.Plural(len(v.Auctions)+1, "auction"))
	w := newWatching(c, agent, call.ID, call.Name)
	if err := w.stay(); err != nil {
		return err
	}
	if err := w.fetch(f.out); err != nil {
		return err
	}
	return w.result([]string{w.id})
}

// refusedJob is the error of a job that its home does not take.
func refusedJob(v control.JobView) error {
	code := exit.Failed
	switch v.Refused {
	case protocol.CodeForbidden:
		code = exit.Refused
	case protocol.CodeMalformed, protocol.CodeMismatch:
		code = exit.Usage
	}
	return exit.Fail(code, "", "%s: %s", v.Home.Name(), v.Why)
}

func newUserAuction() *cobra.Command {
	return &cobra.Command{
		Use: "auction ID", Short: "Show who bid for a job of a federation, who won, and how it stands", Args: cobra.ExactArgs(1), GroupID: "run",
		Long: `Show the auctions of a job that 'ramp user submit --level' offered to a federation: who bid what
and when, who won, which jobs of lower levels it would displace, and how the job stands now. Bids
are in modules: free ones count fully, those of jobs to be suspended less, and the time to bring
the input is subtracted.`,
		Example: "  ramp user auction p0123456789abcdef0123456789abcdef",
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := cli.OpenUser(c)
			if err != nil {
				return err
			}
			defer done()
			var v control.JobView
			if err := control.JobShow.Ask(c.Context(), agent, control.IDCall{ID: args[0]}, &v); err != nil {
				return err
			}
			return cli.Show(c, v, func(w io.Writer) { printJob(w, v) })
		},
	}
}

func printJob(w io.Writer, v control.JobView) {
	cli.Table(w,
		[]string{"job", v.ID}, []string{"level", v.Level}, []string{"state", stateWords(v)}, []string{"home", v.Home.Name()},
		[]string{"modules", fmt.Sprintf("%d..%d, got %d", v.Modules.Least, v.Modules.Most, v.Modules.Got)},
		[]string{"suspended", fmt.Sprintf("%s, %.1f s", words.Plural(v.Preempted, "time"), v.Suspended)}, []string{"ran", fmt.Sprintf("%.1f s", v.Ran)})
	for _, a := range v.Auctions {
		fmt.Fprintf(w, "\nauction %d, %.1f s (mean run %.1f s)\n", a.N, a.Ta, a.Mean)
		rows := [][]string{{"  AT", "SITE", "BID", "FREE", "DISPLACES", "TRANSFER", ""}}
		for _, b := range a.Bids {
			won := ""
			if b.Site == a.Winner {
				won = "wins"
			}
			rows = append(rows, []string{"  " + b.At.Local().Format("15:04:05.000"), b.Site.Name(), fmt.Sprintf("%.3f", b.Bid), strconv.Itoa(b.Free), victimWords(b.Victims), fmt.Sprintf("%.1f s", b.Transfer), won})
		}
		cli.Table(w, rows...)
		for _, s := range a.Refused {
			fmt.Fprintf(w, "  %s won and did not take it\n", s.Name())
		}
	}
}

func stateWords(v control.JobView) string {
	s := string(v.State)
	if v.Site != "" {
		s += " at " + v.Site.Name()
	}
	if v.State == message.JobDone {
		s += fmt.Sprintf(", exit code %d", v.Exit)
	}
	if v.Why != "" {
		s += ": " + v.Why
	}
	return s
}

func victimWords(list []message.Victims) string {
	if len(list) == 0 {
		return "-"
	}
	var parts []string
	for _, v := range list {
		parts = append(parts, fmt.Sprintf("%d of level %d", v.Modules, v.Level))
	}
	return strings.Join(parts, ", ")
}
