package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
)

// place is the annotation that orders commands in the help of their parent.
const place = "place"

// Add puts commands below c, whose help lists them in this order.
func Add(c *cobra.Command, subs ...*cobra.Command) {
	for i, sub := range subs {
		annotate(sub, place, fmt.Sprintf("%03d", i))
	}
	c.AddCommand(subs...)
}

func annotate(c *cobra.Command, key, value string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[key] = value
}

// CommandsOf lists the commands below c that people see, in the order of its help.
func CommandsOf(c *cobra.Command) []*cobra.Command {
	subs := slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool { return sub.Hidden })
	slices.SortStableFunc(subs, func(a, b *cobra.Command) int {
		return strings.Compare(a.Annotations[place], b.Annotations[place])
	})
	return subs
}

// PrintHelp prints the help of a command.
func PrintHelp(c *cobra.Command, _ []string) {
	about := cmp.Or(c.Long, c.Short+".")
	fmt.Fprintf(Stdout(c), "%s\n\n", strings.TrimSpace(about))
	PrintUsage(Stdout(c), c)
}

// PrintUsage lists the commands below c, or how c is called, with examples.
func PrintUsage(w io.Writer, c *cobra.Command) {
	fmt.Fprintf(w, "Usage:\n  %s\n", strings.ReplaceAll(UsageOf(c), "\n", "\n  "))
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
		fmt.Fprintf(w, "\n'%s COMMAND --help' explains a command, with examples.\n", c.CommandPath())
	}
	fmt.Fprint(w, "\n"+exitHelp(c)+"\n")
}

// withProgram is the annotation of a command that ends with the code of a program.
const withProgram = "ends with the code of a program"

// EndsWithProgram marks a command that ends with the code of a program: its own are others.
func EndsWithProgram(c *cobra.Command) *cobra.Command {
	annotate(c, withProgram, "yes")
	return c
}

func exitHelp(c *cobra.Command) string {
	if c.Annotations[withProgram] != "" {
		return exit.RunHelp
	}
	return exit.Help
}

// UsageOf shows how c is called: with arguments if it runs by itself, with COMMAND if
// it has subcommands.
func UsageOf(c *cobra.Command) string {
	if !c.HasAvailableSubCommands() {
		return c.UseLine()
	}
	if c.Annotations[onlyParent] != "" {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine() + "\n" + c.CommandPath() + " COMMAND [flags]"
}

// printCommands lists the commands below c under the titles of their groups.
func printCommands(w io.Writer, c *cobra.Command) {
	list := func(title, group string) {
		for _, sub := range CommandsOf(c) {
			if sub.GroupID == group {
				fmt.Fprintf(w, "%s  %-*s %s\n", title, sub.NamePadding(), sub.Name(), sub.Short)
				title = ""
			}
		}
	}
	rest := "\nCommands:\n"
	for _, g := range c.Groups() {
		list("\n"+g.Title+":\n", g.ID)
		rest = "\nOther commands:\n"
	}
	list(rest, "")
}

// NewHelp is 'ramp help COMMAND'.
func NewHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Show help for a command", GroupID: "program",
		Long:              "Shows the help of a command, as --help does. Without a command, lists all of them.",
		Example:           "  ramp help user buy",
		ValidArgsFunction: commandNames,
		RunE: func(c *cobra.Command, args []string) error {
			about, err := commandAt(c.Root(), args)
			if err != nil {
				return err
			}
			about.SetOut(Stdout(c))
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
