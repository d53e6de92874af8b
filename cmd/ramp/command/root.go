// Package command puts the commands together into the program.
package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ramp/cmd/ramp/agent"
	"ramp/cmd/ramp/bank"
	"ramp/cmd/ramp/ca"
	"ramp/cmd/ramp/cli"
	"ramp/cmd/ramp/formats"
	"ramp/cmd/ramp/lab"
	"ramp/cmd/ramp/resource"
	"ramp/cmd/ramp/user"
)

// Main runs the program and returns its exit code. The first interrupt asks a
// command to stop where nothing is lost; the second ends it.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() { <-ctx.Done(); stop() }()
	if wantsUTC(args) {
		time.Local = time.UTC
	}
	root := newRoot()
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		cli.Completions(root)
	}
	root.SetArgs(args)
	root.SetIn(in)
	told := &cli.Shown{W: out}
	root.SetOut(told)
	root.SetErr(errOut)
	c, err := root.ExecuteContextC(ctx)
	return cli.Ended(c, told.Ended(err))
}

// wantsUTC reports whether --utc is given. It is found before flags are parsed, since times in
// flags are read in the local zone.
func wantsUTC(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--utc") || slices.Contains(args, "--utc=true")
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "ramp", Short: "A peer-to-peer market for computing time",
		Long: `RAMP is a market for computing time without a broker. You describe what a job needs, and agents
of independent sites bid for it in open rounds. The best set of bids is bought as a whole or not
at all, and a bank settles it on a contract that both sides signed.`,
		Example: `  ramp demo                                    try a whole market on this machine
  ramp user init --join invitation.ramp        buy: you were sent an invitation
  ramp resource init --join invitation.ramp    sell time of this machine or its batch system
  ramp bank init --currency CPU                found a market and invite others`,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.PersistentFlags().Bool("json", false, "print JSON for machines")
	root.PersistentFlags().Bool("utc", false, "show and read times in UTC instead of local time; JSON always has UTC")
	root.PersistentFlags().BoolP("quiet", "q", false, "show no progress, only results and errors")
	root.PersistentFlags().BoolP("help", "h", false, "show help")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(cli.PrintHelp)
	root.SetUsageFunc(func(c *cobra.Command) error { cli.PrintUsage(cli.Stderr(c), c); return nil })
	root.SetHelpCommand(cli.NewHelp())
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run programs"},
		&cobra.Group{ID: "start", Title: "First steps"},
		&cobra.Group{ID: "trade", Title: "Buy, sell, and keep accounts"},
		&cobra.Group{ID: "formats", Title: "Requests, messages and workload logs"},
		&cobra.Group{ID: "measure", Title: "Simulate and measure"},
		&cobra.Group{ID: "program", Title: "This program"},
	)
	cli.Add(root, append(user.Short(), lab.NewDemo(), agent.NewStatus(), agent.NewDoctor(), user.New(), resource.New(), bank.New(), ca.New(),
		formats.NewRFQL(), formats.NewACL(), formats.NewSWF(), lab.NewSim(), lab.NewBench(), agent.NewVersion(),
		lab.NewSoakReal(), cli.NewMan(), resource.NewKeepJob(), resource.NewTryEscape())...)
	root.InitDefaultHelpCmd()
	root.SetCompletionCommandGroupID("program")
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Short, completion.Example = "Generate shell completion", "  ramp completion bash > ~/.local/share/bash-completion/completions/ramp"
	}
	cli.UsageErrors(root)
	return root
}
