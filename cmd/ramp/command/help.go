package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// commandGroup is a heading of a list of commands, and what stands under it, in
// this order.
type commandGroup struct {
	title    string
	commands []string
}

// commandGroups are the headings under which the commands of parent are listed; a
// parent with few commands has none.
func commandGroups(parent string) []commandGroup {
	switch parent {
	case "ramp":
		return []commandGroup{
			{"First steps", []string{"demo", "status", "doctor"}},
			{"Buy, sell, and keep the accounts", []string{"user", "resource", "bank", "ca"}},
			{"Requests, messages and workload logs", []string{"rfql", "acl", "swf"}},
			{"Simulate and measure", []string{"sim", "bench"}},
			{"This program", []string{"help", "version", "completion"}},
		}
	case "ramp user":
		return []commandGroup{
			{"Join a market", []string{"init", "serve", "config"}},
			{"Buy time", []string{"resources", "quote", "buy", "cancel"}},
			{"Run programs in it", []string{"run", "jobs", "status", "logs", "fetch", "suspend", "resume", "kill"}},
			{"What was bought", []string{"list", "show", "receipt", "trace"}},
			{"Money", []string{"balance", "statement", "runway", "exchange", "agree", "dispute"}},
		}
	case "ramp resource":
		return []commandGroup{
			{"Join a market", []string{"init", "config", "check", "serve"}},
			{"What it sells", []string{"status", "offers", "reservations"}},
			{"What it earns", []string{"balance", "statement", "receipt"}},
			{"Stop and go on", []string{"drain", "resume"}},
		}
	case "ramp bank":
		return []commandGroup{
			{"Make one, and let others in", []string{"init", "serve", "config", "invite"}},
			{"Accounts and money", []string{"account", "balance", "credit", "transfer", "hold", "dispute"}},
			{"Rules", []string{"policy", "allowance", "group", "rate"}},
			{"Books", []string{"statement", "report", "audit", "export"}},
			{"Copies and recovery", []string{"backup", "restore", "recovery", "compact"}},
			{"For those who do not trust it", []string{"verify", "witness"}},
		}
	}
	return nil
}

// printHelp is what --help prints of a command.
func printHelp(c *cobra.Command, _ []string) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(stdout(c), "%s\n\n", strings.TrimSpace(about))
	printUsage(stdout(c), c)
}

// printUsage lists the commands below c, or how c is called, with examples.
func printUsage(w io.Writer, c *cobra.Command) {
	fmt.Fprint(w, "Usage:\n  "+usageOf(c)+"\n")
	if c.HasAvailableSubCommands() {
		printCommands(w, c)
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if c.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s\n", flagUsages(c.LocalFlags()))
	}
	if c.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nGlobal Flags:\n%s\n", flagUsages(c.InheritedFlags()))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nMore about one of them, with examples: '%s COMMAND --help'\n", c.CommandPath())
	}
	fmt.Fprint(w, "\n"+exitHelp+"\n")
}

// usageOf is one line: what runs by itself is told as it runs, and what has only
// commands below it, with their place.
func usageOf(c *cobra.Command) string {
	if !c.HasAvailableSubCommands() {
		return c.UseLine()
	}
	if c.Annotations[onlyParent] != "" {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine() + "\n  " + c.CommandPath() + " COMMAND [flags]"
}

// printCommands lists the commands below c under their headings, and those that have
// none behind them.
func printCommands(w io.Writer, c *cobra.Command) {
	groups, listed := commandGroups(c.CommandPath()), map[string]bool{}
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, name := range g.commands {
			listed[name] = true
			printCommand(w, childOf(c, name))
		}
	}
	rest := "\nCommands:\n"
	if len(groups) > 0 {
		rest = "\nOther commands:\n"
	}
	for _, sub := range c.Commands() {
		if listed[sub.Name()] || !sub.IsAvailableCommand() {
			continue
		}
		fmt.Fprint(w, rest)
		rest = ""
		printCommand(w, sub)
	}
}

func printCommand(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
}

// childOf is the command of a name below c; a heading that names another is a mistake
// of this program.
func childOf(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	panic("no command " + c.CommandPath() + " " + name)
}

// newHelp is 'ramp help COMMAND'.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Say what a command does",
		Long: `Says what a command does, as its --help. Without one: which commands there are.`,
		RunE: func(c *cobra.Command, args []string) error {
			about, err := commandAt(c.Root(), args)
			if err != nil {
				return err
			}
			about.SetOut(stdout(c))
			return about.Help()
		},
	}
}

// commandAt follows names from a command to one below it.
func commandAt(c *cobra.Command, names []string) (*cobra.Command, error) {
	for _, name := range names {
		next, _, err := c.Find([]string{name})
		if err != nil || next == c {
			return nil, unknownCommand(c, name)
		}
		c = next
	}
	return c, nil
}
