package command

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onlyParent marks a command that does nothing but print its help.
const onlyParent = "only a parent"

// usageErrors gives wrong arguments the exit code of bad usage.
func usageErrors(c *cobra.Command) {
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
		usageErrors(sub)
	}
}

// becomeParent lets a command that has nothing to do by itself print its help.
func becomeParent(c *cobra.Command) {
	if c.Runnable() {
		return
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.Annotations = map[string]string{onlyParent: "yes"}
}

// usageError says which command was used wrongly, unless err says it itself.
func usageError(c *cobra.Command, err error) error {
	var e *exitError
	if err == nil || errors.As(err, &e) {
		return err
	}
	return fail(exitUsage, "see '"+c.CommandPath()+" --help'", "%s: %s", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), usageWords(c, err))
}

// usageWords tell what the library finds wrong with a command line as a person would.
func usageWords(c *cobra.Command, err error) string {
	text := err.Error()
	if names, ok := strings.CutPrefix(text, "required flag(s) "); ok {
		names = strings.NewReplacer(`"`, "", ", ", ", --").Replace(strings.TrimSuffix(names, " not set"))
		return "--" + names + " is missing: want " + c.UseLine()
	}
	if i := strings.Index(text, "received "); i >= 0 && strings.Contains(text, "arg(s)") {
		return plural(atoi(text[i+len("received "):]), "argument") + ": want " + c.UseLine()
	}
	return text
}

// atoi is a number that this program has printed itself.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// flagError is a wrong flag, or the wrong command before it: of 'ramp user bui
// --cores 2' the flag is right.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.Annotations[onlyParent] != "" && len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return fail(exitUsage, flagHint(c, err), "%s", flagWords(err))
}

// flagWords tell what is wrong with a flag or its value in the words of this program,
// not in those of the library that has read it.
func flagWords(err error) string {
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return belowZero(err.Error())
	}
	f := value.GetFlag()
	if want := wantedValue(f.Value.Type()); want != "" {
		return fmt.Sprintf("--%s %q: want %s", f.Name, value.GetValue(), want)
	}
	return fmt.Sprintf("--%s: %v", f.Name, value.Unwrap())
}

// belowZero explains a number with a sign that was taken for a flag.
func belowZero(text string) string {
	if m := regexp.MustCompile(`^unknown shorthand flag: '\d' in (-\d\S*)$`).FindStringSubmatch(text); m != nil {
		return m[1] + ": want a number that is not below zero"
	}
	return text
}

// wantedValue says what a flag of one of the library's kinds takes; of this program's
// own kinds their errors tell it.
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
	return fail(exitUsage, commandHint(c, name), "unknown command %q of %q", name, c.CommandPath())
}
