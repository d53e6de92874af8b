package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/acl"
)

func NewACL() *cobra.Command {
	c := &cobra.Command{
		Use: "acl", Short: "Read and write FIPA-ACL messages", GroupID: "formats",
		Long: "Convert FIPA-ACL messages between their string representation (SC00070) and JSON.",
	}
	c.AddCommand(newACLParse(), newACLFormat())
	return c
}

// maxMessages bounds the input, in bytes: 'ramp user trace' prints far less for a purchase.
const maxMessages = 64 << 20

func newACLParse() *cobra.Command {
	return &cobra.Command{
		Use: "parse [FILE]", Short: "Convert FIPA strings to JSON", Args: cobra.MaximumNArgs(1),
		Long: `Read FIPA strings from FILE or standard input and print each as a JSON value, in order. Comments
between messages, from ';' to the end of the line, are ignored, so the output of
'ramp user trace' can be piped in. Content that came as bytes is printed as {"base64":"…"}. Ends
with 2 at the first error, and names its place.`,
		Example: "  ramp acl parse message.acl\n  ramp user trace p23e5 | ramp acl parse",
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args, maxMessages)
			if err != nil {
				return err
			}
			return withFile(path, acl.ParseAll(b, func(m acl.Message) error { return cli.PrintJSON(cli.Stdout(c), m) }))
		},
	}
}

// withFile adds the file to a syntax error; other errors come from printing.
func withFile(path string, err error) error {
	var wrong *acl.SyntaxError
	if errors.As(err, &wrong) {
		return exit.Fail(exit.Usage, "", "%s: %w", path, err)
	}
	return err
}

func newACLFormat() *cobra.Command {
	return &cobra.Command{
		Use: "format [FILE]", Short: "Convert messages in JSON to FIPA strings", Args: cobra.MaximumNArgs(1),
		Long: `Read JSON messages from FILE or standard input, one value after the other as 'ramp acl parse'
prints them, and print each as a FIPA string. A reply-by is a time in RFC 3339 or in FIPA's
format. Ends with 2 at the first error.`,
		Example: "  ramp acl format message.json",
		RunE: func(c *cobra.Command, args []string) error {
			b, path, err := aclInput(c, args, maxMessages)
			if err != nil {
				return err
			}
			return formatAll(b, path, func(m acl.Message) error {
				if cli.WantsJSON(c) {
					return cli.PrintJSON(cli.Stdout(c), map[string]string{"text": string(acl.Format(m))})
				}
				_, err := fmt.Fprintln(cli.Stdout(c), string(acl.Format(m)))
				return err
			})
		},
	}
}

// formatAll reads a sequence of at least one JSON message, and calls take for each.
func formatAll(b []byte, path string, take func(acl.Message) error) error {
	values := json.NewDecoder(bytes.NewReader(b))
	for n := 1; ; n++ {
		var value json.RawMessage // so that an error below concerns the message
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
			return exit.Fail(exit.Usage, "", "%s: no message: want a JSON object", path)
		case err != nil:
			return exit.Fail(exit.Usage, "'ramp acl parse' prints such objects", "%s: message %d: %w", path, n, words.JSONFault(err))
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
	b, err := words.ReadInput(c.Context(), c.InOrStdin(), path, most)
	if path == "-" {
		path = "standard input"
	}
	return b, path, err
}
