package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ramp/cmd/ramp/command"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f with every command that people see.
func everyCommand(c *cobra.Command, f func(c *cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			everyCommand(sub, f)
		}
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	n := 0
	everyCommand(command.Root(), func(c *cobra.Command) {
		if !c.HasAvailableSubCommands() && c.Parent().Name() != "completion" {
			n++
			if c.Example == "" {
				t.Errorf("%s has no example", c.CommandPath())
			}
		}
	})
	if n < 70 {
		t.Errorf("%d commands: the tree is not walked rightly", n)
	}
}

// What a command does is said in more than its line of a list, with what its exit codes
// mean; that of a shell's completion is the library's.
func TestEveryCommandOfAPersonSaysMoreThanItsLine(t *testing.T) {
	t.Parallel()
	short := 0
	everyCommand(command.Root(), func(c *cobra.Command) {
		if !c.HasAvailableSubCommands() && c.Long == "" {
			short++
			if strings.HasPrefix(c.CommandPath(), "ramp user ") || strings.HasPrefix(c.CommandPath(), "ramp resource ") {
				t.Errorf("%s says no more than %q", c.CommandPath(), c.Short)
			}
		}
		for line := range strings.Lines(c.Long) {
			if !strings.Contains(c.CommandPath(), " completion") && len([]rune(strings.TrimRight(line, "\n"))) > 96 {
				t.Errorf("%s: a line of its text is %d letters long: %s", c.CommandPath(), len(line), line)
			}
		}
	})
	if short > 12 {
		t.Errorf("%d commands say no more than their line", short)
	}
}

// Lengths of time are taken in days everywhere, as requests have them.
func TestEveryFlagOfATimeTakesDays(t *testing.T) {
	t.Parallel()
	n := 0
	everyCommand(command.Root(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			n++
			if err := f.Value.Set("1d12h"); err != nil || f.Value.String() != "36h0m0s" {
				t.Errorf("%s --%s 1d12h: %s, %v", c.CommandPath(), f.Name, f.Value, err)
			}
			for _, bad := range []string{"soon", "1", "d", ""} {
				if err := f.Value.Set(bad); err == nil {
					t.Errorf("%s --%s takes %q", c.CommandPath(), f.Name, bad)
				}
			}
		})
	})
	if n < 15 {
		t.Errorf("%d flags: they are not found rightly", n)
	}
}

// Every example is taken as far as flags and numbers of arguments go.
func TestEveryExampleIsOneThatTheProgramTakes(t *testing.T) {
	t.Parallel()
	everyCommand(command.Root(), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			for _, words := range commandsIn(line) {
				if err := takes(words); err != nil {
					t.Errorf("%s: %q: %v", c.CommandPath(), strings.TrimSpace(line), err)
				}
			}
		}
	})
}

// takes reports what is wrong with a command line. Each is tried on a tree of its own:
// flags remember.
func takes(words []string) error {
	c, rest, err := command.Root().Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	return c.ValidateArgs(c.Flags().Args())
}

// commandsIn are the command lines of ramp in a line of shell, without its name, and
// without what is told two blanks behind.
func commandsIn(line string) (lines [][]string) {
	line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
	for _, part := range regexp.MustCompile(` (?:&&|\|) `).Split(line, -1) {
		part = regexp.MustCompile(` ?[<>].*$`).ReplaceAllString(part, "")
		words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(part, -1)
		if len(words) == 0 || words[0] != "ramp" {
			continue
		}
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
		}
		lines = append(lines, words[1:])
	}
	return lines
}

// A list under headings has every command once: none is left over.
func TestNoCommandIsWithoutAHeading(t *testing.T) {
	t.Parallel()
	everyCommand(command.Root(), func(c *cobra.Command) {
		var out strings.Builder
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "Other commands:") {
			t.Errorf("%s has commands under no heading:\n%s", c.CommandPath(), out.String())
		}
		for _, sub := range c.Commands() {
			if n := len(regexp.MustCompile(`(?m)^  `+sub.Name()+` +[A-Z]`).FindAllString(out.String(), -1)); sub.IsAvailableCommand() && n != 1 {
				t.Errorf("%s is listed %d times", sub.CommandPath(), n)
			}
		}
	})
}

// What the documents name in running text is there too, flags included.
func TestEveryCommandThatTheDocumentsNameIsThere(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, "../../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`ramp ([a-z][^`]*)`").FindAllStringSubmatch(string(text), -1) {
			named++
			if why := unknownIn(strings.Fields(m[1])); why != "" {
				t.Errorf("%s: %q: %s", filepath.Base(page), m[0], why)
			}
		}
	}
	if named < 100 {
		t.Errorf("%d commands: the documents are not read rightly", named)
	}
}

// unknownIn says what of a command line is not there; words for arguments may be any.
func unknownIn(words []string) string {
	for i, w := range words { // of alternatives the first
		words[i], _, _ = strings.Cut(w, "|")
	}
	c, rest, err := command.Root().Find(words)
	if err != nil {
		return err.Error()
	}
	if c.HasAvailableSubCommands() && len(rest) > 0 && regexp.MustCompile(`^[a-z]+$`).MatchString(rest[0]) {
		return "no command " + rest[0]
	}
	for _, w := range rest {
		if w == "--" {
			break
		}
		name, isFlag := strings.CutPrefix(w, "--")
		name, _, _ = strings.Cut(name, "=")
		name = strings.Trim(name, "[].,;:")
		if isFlag && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil && name != "help" {
			return "no flag --" + name
		}
	}
	return ""
}

// Help says what the value of a flag is, not of which type of Go it is.
func TestHelpSaysWhatTheValueOfAFlagIs(t *testing.T) {
	t.Parallel()
	types := regexp.MustCompile(`--[a-z-]+ (string|int|int64|uint|float|float64|duration|strings|stringArray|stringToInt|bool)\b`)
	every := map[string]bool{}
	everyCommand(command.Root(), func(c *cobra.Command) {
		var out strings.Builder
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for _, m := range types.FindAllString(out.String(), -1) {
			t.Errorf("%s: %q", c.CommandPath(), m)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +--[a-z-]+ ([A-Z]+)`).FindAllStringSubmatch(out.String(), -1) {
			every[m[1]] = true
		}
	})
	for _, word := range []string{"DIR", "FILE", "N", "D", "TIME", "C", "ADDR"} {
		if !every[word] {
			t.Errorf("no flag takes %s: the help is not read rightly", word)
		}
	}
}
