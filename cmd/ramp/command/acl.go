package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
		Use: "format [FILE]", Short: "Read messages as JSON (or standard input) and print the FIPA strings", Args: cobra.MaximumNArgs(1),
		Long: `Reads messages as JSON from FILE, or standard input, one value after the other as 'ramp
acl parse' prints them, and prints the FIPA string of each. A reply-by is a time of RFC
3339, or as FIPA writes it. Ends with 2 at the first fault.`,
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args, maxMessages)
			if err != nil {
				return err
			}
			return formatAll(b, path, func(m acl.Message) error {
				if wantsJSON(c) {
					return printJSON(stdout(c), map[string]string{"text": string(acl.Format(m))})
				}
				_, err := fmt.Fprintln(stdout(c), string(acl.Format(m)))
				return err
			})
		},
	}
}

// formatAll hands on messages that stand as JSON one after the other, at least one.
func formatAll(b []byte, path string, take func(acl.Message) error) error {
	values := json.NewDecoder(bytes.NewReader(b))
	for n := 1; ; n++ {
		var value json.RawMessage // so that a fault below is one of the message
		err := values.Decode(&value)
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		var m acl.Message
		if err == nil {
			err = json.Unmarshal(value, &m)
		}
		switch {
		case errors.Is(err, io.EOF):
			return fail(exitUsage, "", "%s: no message: want a JSON object", path)
		case err != nil && n > 1:
			return fail(exitUsage, "", "%s: message %d: %w", path, n, err)
		case err != nil:
			return fail(exitUsage, "", "%s: %w", path, err)
		}
		if err := take(m); err != nil {
			return err
		}
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
