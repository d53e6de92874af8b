package command

import (
	"encoding/json"
	"errors"
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

// maxMessages bounds what is read at once, in bytes: what 'ramp user trace' prints of a
// purchase is far below.
const maxMessages = 64 << 20

func newACLParse() *cobra.Command {
	return &cobra.Command{
		Use: "parse [FILE]", Short: "Read FIPA strings (or standard input) and print them as JSON", Args: cobra.MaximumNArgs(1),
		Long: `Reads FIPA strings from FILE, or standard input, and prints each as a JSON value, in
their order. Between messages, comments from a ';' to the end of the line are passed
over, so that it reads what 'ramp user trace' prints. Ends with 2 at the first fault,
and says its place.`,
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args, maxMessages)
			if err != nil {
				return err
			}
			return withFile(path, acl.ParseAll(b, func(m acl.Message) error { return printJSON(stdout(c), m) }))
		},
	}
}

// withFile says where a message is wrong; what cannot be printed is no fault of it.
func withFile(path string, err error) error {
	var wrong *acl.SyntaxError
	if errors.As(err, &wrong) {
		return fail(exitUsage, "", "%s: %w", path, err)
	}
	return err
}

func newACLFormat() *cobra.Command {
	return &cobra.Command{
		Use: "format [FILE]", Short: "Read a message as JSON (or standard input) and print the FIPA string", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args, acl.MaxText)
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

func aclInput(c *cobra.Command, args []string, most int64) ([]byte, string, error) {
	path := "-"
	if len(args) == 1 {
		path = args[0]
	}
	b, err := readInput(c, path, most)
	if path == "-" {
		path = "standard input"
	}
	return b, path, err
}
