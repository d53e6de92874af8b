package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/words"
)

// NewConfig is the command group `config` of a kind of agent.
func NewConfig(kind string, paths func(c *cobra.Command) ([]string, error)) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Check the configuration", GroupID: "join"}
	check := &cobra.Command{
		Use: "check [FILE]", Short: "Check a configuration without starting anything", Args: cobra.MaximumNArgs(1),
		Long: `Check a configuration (default: the agent's) without starting anything: unknown keys, with their
line, values that are not allowed, and an invalid certificate. Ends with 2 if something is
wrong.`,
		Example: "  ramp " + kind + " config check",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return runConfigCheck(c, kind, args)
			}
			files, err := paths(c)
			if err != nil {
				return err
			}
			return runConfigCheck(c, kind, files)
		},
	}
	group.AddCommand(check)
	return group
}

// ConfigsIn finds the one configuration in the directory of an agent.
func ConfigsIn(kind string) func(c *cobra.Command) ([]string, error) {
	return func(c *cobra.Command) ([]string, error) {
		dir, err := DirOf(c, kind)
		return []string{filepath.Join(dir, config.Name)}, err
	}
}

// runConfigCheck checks the files in order, up to the first bad one. The JSON is a list if
// there are several.
func runConfigCheck(c *cobra.Command, kind string, files []string) error {
	list := make([]config.Checked, 0, len(files))
	for _, file := range files {
		checked, err := config.CheckConfig(kind, file)
		if err != nil {
			return err
		}
		list = append(list, checked)
	}
	if err := config.Distinct(files); err != nil {
		return err
	}
	return Show(c, oneOrAll(list), func(w io.Writer) {
		for _, k := range list {
			fmt.Fprintf(w, "%s is good: %s %s, certificate until %s\n", filepath.Clean(k.File), kind, k.Agent, words.Date(k.NotAfter))
		}
	})
}
