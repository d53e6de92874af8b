package command

import (
	"context"
	"encoding/json"
	"errors"
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
	root.SetOut(out)
	root.SetErr(errOut)
	return report(errOut, root.ExecuteContext(ctx))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ramp",
		Short: "A peer-to-peer market for computing time",
		Long: `ramp is a market for computing time without a broker. A user agent announces what
a job needs, agents of independent sites bid for it over open rounds, the best set
of bids is bought all or nothing, and a bank settles it on a contract that both
sides signed.

` + exitHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().Bool("json", false, "print JSON for machines")
	root.PersistentFlags().BoolP("quiet", "q", false, "show no progress, only results and errors")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fail(exitUsage, flagHint(c, err), "%w", err)
	})
	root.AddCommand(newDemo(), newStatus(), newDoctor(), newVersion(), newUser(), newResource(), newBank(), newCA(), newRFQL(), newACL(), newSWF(), newBench(), newSim(), newSoakReal(), newMan(), newKeepJob())
	watchLists(root)
	usageErrors(root)
	return root
}

// suggestWithin is how many letters a mistyped command may differ in.
const suggestWithin = 2

// usageErrors gives wrong arguments the exit code of bad usage.
func usageErrors(c *cobra.Command) {
	check := c.Args
	if check == nil && c.HasSubCommands() {
		check = noSuchCommand
		if c.RunE == nil {
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if check != nil {
			if err := check(c, args); err != nil {
				return usageError(c, err)
			}
		}
		return usageError(c, c.ValidateRequiredFlags()) // cobra's own check has no exit code
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

// usageError says which command was used wrongly, unless err says it itself.
func usageError(c *cobra.Command, err error) error {
	var e *exitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return fail(exitUsage, "see '"+c.CommandPath()+" --help'", "%s: %w", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), err)
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see '" + c.CommandPath() + " --help'"
	c.SuggestionsMinimumDistance = suggestWithin
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean '" + c.CommandPath() + " " + near[0] + "'?"
	}
	return fail(exitUsage, hint, "unknown command %q of %q", args[0], c.CommandPath())
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
