package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ramp/agents/exit"
	"ramp/agents/words"
)

// onlyParent is the annotation of a command that only prints its help.
const onlyParent = "only a parent"

// UsageErrors makes wrong arguments end with the exit code of bad usage.
func UsageErrors(c *cobra.Command) {
	check := c.Args
	if c.HasSubCommands() {
		check = noSuchCommand // none of them takes arguments
		becomeParent(c)
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
		UsageErrors(sub)
	}
}

// becomeParent makes a command that only has subcommands print its help.
func becomeParent(c *cobra.Command) {
	if c.Runnable() {
		return
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	annotate(c, onlyParent, "yes")
}

// usageError names the command that was used wrongly, unless err has an exit code already.
func usageError(c *cobra.Command, err error) error {
	var e *exit.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	hint := "see '" + c.CommandPath() + " --help'"
	if f := c.Flags().Lookup("watch"); f != nil && f.Changed && f.Value.String() == f.NoOptDefVal {
		hint = "--watch takes its value after '=', such as --watch=5s"
	}
	return exit.Fail(exit.Usage, hint, "%s: %s", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), usageWords(c, err))
}

// usageWords rephrases what cobra found wrong with a command line.
func usageWords(c *cobra.Command, err error) string {
	text := err.Error()
	if names, ok := strings.CutPrefix(text, "required flag(s) "); ok {
		names = strings.NewReplacer(`"`, "", ", ", ", --").Replace(strings.TrimSuffix(names, " not set"))
		return "--" + names + " is required; usage: " + c.UseLine()
	}
	if name, ok := strings.CutPrefix(text, "unknown command "); ok { // of cobra.NoArgs
		name, _, _ = strings.Cut(name, " for ")
		return strings.ReplaceAll(name, `"`, "'") + ": this command takes no argument"
	}
	if i := strings.Index(text, "received "); i >= 0 && strings.Contains(text, "arg(s)") {
		n, _ := strconv.Atoi(text[i+len("received "):]) // cobra printed it
		return words.Plural(n, "argument") + ": want " + c.UseLine()
	}
	return text
}

// FlagError reports a wrong flag, or the wrong command before it: in 'ramp user bui
// --cores 2' the flag is right.
func FlagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.Annotations[onlyParent] != "" && len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return exit.Fail(exit.Usage, flagHint(c, err), "%s", flagWords(c, err))
}

// flagWords rephrases what the flag library found wrong with a flag or its value.
func flagWords(c *cobra.Command, err error) string {
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return belowZero(c, err.Error())
	}
	f := value.GetFlag()
	if want := wantedValue(f.Value.Type()); want != "" {
		return fmt.Sprintf("--%s %q: want %s", f.Name, value.GetValue(), want)
	}
	return fmt.Sprintf("--%s: %v", f.Name, value.Unwrap())
}

// belowZero explains a number with a sign that was taken for a flag, and names its argument.
func belowZero(c *cobra.Command, text string) string {
	m := regexp.MustCompile(`^unknown shorthand flag: '\d' in (-\d\S*)$`).FindStringSubmatch(text)
	if m == nil {
		return text
	}
	name := ""
	if names := strings.Fields(c.Use)[1:]; len(c.Flags().Args()) < len(names) {
		name = names[len(c.Flags().Args())] + " "
	}
	return name + m[1] + ": want a number that is not below zero"
}

// wantedValue describes what a flag of one of the library's types takes; the errors of
// this program's own types say it themselves.
func wantedValue(kind string) string {
	switch kind {
	case "int", "int64", "int64Slice":
		return "a whole number"
	case "uint", "uint64":
		return "a whole number, zero or more"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 90s, 1h30m or 7d"
	case "bool":
		return "true or false"
	case "stringToInt":
		return "NAME=NUMBER, several with commas between"
	}
	return ""
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(c, args[0])
}

func unknownCommand(c *cobra.Command, name string) error {
	return exit.Fail(exit.Usage, commandHint(c, name), "unknown command %q of %q", name, c.CommandPath())
}
