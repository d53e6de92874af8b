package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
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
	return fail(exitUsage, "see '"+c.CommandPath()+" --help'", "%s: %w", strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), err)
}

// flagError is a wrong flag, or the wrong command before it: of 'ramp user bui
// --cores 2' the flag is right.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.Annotations[onlyParent] != "" && len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return fail(exitUsage, flagHint(c, err), "%w", err)
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
