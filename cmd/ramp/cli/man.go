package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"ramp/agents/exit"
	"ramp/agents/words"
)

// NewMan writes manual pages. It is for those who make packages, and hidden. Pages are
// dated by SOURCE_DATE_EPOCH, so that a package can be built again byte by byte.
func NewMan() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "man", Short: "Write the manual pages, one per command", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, err := writeManuals(c.Root(), out)
			if err != nil {
				return exit.Fail(exit.Failed, "", "%w", err)
			}
			if WantsJSON(c) {
				return PrintJSON(Stdout(c), files)
			}
			fmt.Fprintln(Stdout(c), words.Plural(len(files), "page")+" in "+out)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "man", "write to `DIR`")
	return c
}

func writeManuals(root *cobra.Command, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	forManual(root)
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Source: "RAMP", Manual: "User Commands"}, dir); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "ramp*.1"))
}

// forManual adds to c, and to the commands below it, what cobra leaves out of manuals: exit
// codes, and placeholders of flags, which it takes from their defaults.
func forManual(c *cobra.Command) {
	c.Long = cmp.Or(c.Long, c.Short+".") + "\n\n# EXIT STATUS\n" + strings.TrimPrefix(exitHelp(c), "Exit codes: ")
	ForReaders(c, func(f *pflag.Flag) {
		word, _ := pflag.UnquoteUsage(f)
		if word = cmp.Or(word, "true"); f.DefValue != "" && f.DefValue != "false" && f.DefValue != word {
			f.Usage += " (default " + f.DefValue + ")"
		}
		f.DefValue = word
	})
	for _, sub := range c.Commands() {
		forManual(sub)
	}
}
