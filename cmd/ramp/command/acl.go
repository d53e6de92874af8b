package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"ramp/protocol/acl"
)

func newACL() *cobra.Command {
	c := &cobra.Command{
		Use:   "acl",
		Short: "Read and write FIPA-ACL messages",
		Long:  `Converts FIPA-ACL messages between their string representation (SC00070) and JSON.`,
	}
	c.AddCommand(newACLParse(), newACLFormat())
	return c
}

func newACLParse() *cobra.Command {
	return &cobra.Command{
		Use: "parse [FILE]", Short: "Read a FIPA string (or standard input) and print it as JSON", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args)
			if err != nil {
				return err
			}
			m, err := acl.Parse(b)
			if err != nil {
				return fail(exitUsage, "", "%s: %w", path, err)
			}
			return printJSON(stdout(c), m)
		},
	}
}

func newACLFormat() *cobra.Command {
	return &cobra.Command{
		Use: "format [FILE]", Short: "Read a message as JSON (or standard input) and print the FIPA string", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args)
			if err != nil {
				return err
			}
			var m acl.Message
			if err := json.Unmarshal(b, &m); err != nil {
				return fail(exitUsage, "", "%s: %w", path, err)
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), map[string]string{"text": string(acl.Format(m))})
			}
			_, err = fmt.Fprintln(stdout(c), string(acl.Format(m)))
			return err
		},
	}
}

func aclInput(c *cobra.Command, args []string) ([]byte, string, error) {
	path := "-"
	if len(args) == 1 {
		path = args[0]
	}
	b, err := readInput(c, path, acl.MaxText)
	if path == "-" {
		path = "standard input"
	}
	return b, path, err
}
