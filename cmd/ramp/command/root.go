package command

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the program and returns its exit code. The first interrupt asks a
// command to stop where nothing is lost; the second ends it.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { <-ctx.Done(); stop() }()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	told := &shown{w: out}
	root.SetOut(told)
	root.SetErr(errOut)
	return report(errOut, told.ended(root.ExecuteContext(ctx)))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ramp",
		Short: "A peer-to-peer market for computing time",
		Long: `RAMP is a market for computing time without a broker. You say what a job needs. Agents
of independent sites bid for it over open rounds. The best set of bids is bought all or
nothing, and a bank settles it on a contract that both sides signed.`,
		Example:       firstSteps,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().Bool("json", false, "print JSON for machines")
	root.PersistentFlags().BoolP("quiet", "q", false, "show no progress, only results and errors")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(printHelp)
	root.SetUsageFunc(func(c *cobra.Command) error { printUsage(stderr(c), c); return nil })
	root.SetHelpCommand(newHelp())
	root.AddCommand(newDemo(), newStatus(), newDoctor(), newVersion(), newUser(), newResource(), newBank(), newCA(), newRFQL(), newACL(), newSWF(), newBench(), newSim(), newSoakReal(), newMan(), newKeepJob())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	childOf(root, "completion").Short = "Print what lets a shell complete commands and flags"
	watchLists(root)
	completions(root)
	giveExamples(root, examples())
	giveAbouts(root, abouts())
	usageErrors(root)
	return root
}

// firstSteps is what somebody may type who has never seen the program.
const firstSteps = `  ramp demo                                    see a whole market on this machine
  ramp user init --join invitation.ramp        buy: somebody has sent you an invitation
  ramp resource init --join invitation.ramp    sell: time of this machine or its batch system
  ramp bank init --currency CPU                found a market, and invite others`

// giveExamples writes the examples to their commands, but for those that have their
// own.
func giveExamples(c *cobra.Command, all map[string]string) {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	if text := all[path]; c.Example == "" && text != "" {
		c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	for _, sub := range c.Commands() {
		giveExamples(sub, all)
	}
}

// giveAbouts writes what is said of commands that do not say it themselves.
func giveAbouts(c *cobra.Command, all map[string]string) {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	if c.Long == "" {
		c.Long = all[path]
	}
	for _, sub := range c.Commands() {
		giveAbouts(sub, all)
	}
}

// wantsJSON reports whether --json was given.
func wantsJSON(c *cobra.Command) bool {
	j, err := c.Flags().GetBool("json")
	return err == nil && j
}

// printJSON writes v as one indented JSON value.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
