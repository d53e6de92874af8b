package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan writes manual pages from what the commands say of themselves. It is for
// who makes packages, and hidden.
func newMan() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "man", Short: "Write the manual pages, one per command", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := os.MkdirAll(out, 0o755); err != nil {
				return fail(exitFailed, "", "%w", err)
			}
			files, err := writeManuals(c.Root(), out)
			if err != nil {
				return fail(exitFailed, "", "%w", err)
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), files)
			}
			fmt.Fprintln(stdout(c), plural(len(files), "page")+" in "+out)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "man", "directory to write to")
	return c
}

func writeManuals(c *cobra.Command, dir string) (files []string, err error) {
	if !c.IsAvailableCommand() && c.HasParent() {
		return nil, nil
	}
	file := filepath.Join(dir, manualName(c)+".1")
	if err := os.WriteFile(file, []byte(manual(c)), 0o644); err != nil {
		return nil, err
	}
	files = []string{file}
	for _, sub := range c.Commands() {
		more, err := writeManuals(sub, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

func manualName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manual is the page of a command in roff.
func manual(c *cobra.Command) string {
	var b strings.Builder
	name := manualName(c)
	fmt.Fprintf(&b, ".TH %q 1 \"\" \"RAMP\" \"User Commands\"\n", strings.ToUpper(name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	if c.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(c.Long))
	}
	manualFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manualFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s\n", roff(strings.TrimPrefix(exitHelp, "Exit codes: ")))
	manualAlso(&b, c)
	return b.String()
}

func manualFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(shownFlag(f))
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR %s\n%s\n", roff(name), roff(value), roff(usage))
	})
}

func manualAlso(b *strings.Builder, c *cobra.Command) {
	var also []string
	if c.HasParent() {
		also = append(also, manualName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, manualName(sub))
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(b, ".SH SEE ALSO\n\\fB%s\\fR(1)\n", strings.Join(also, "\\fR(1), \\fB"))
	}
}

// paragraphs keeps empty lines as paragraphs.
func paragraphs(s string) string {
	return strings.ReplaceAll(roff(strings.TrimSpace(s)), "\n\n", "\n.PP\n")
}

// roff escapes what a manual page would take for a command.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\\`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
