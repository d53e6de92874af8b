package command_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"ramp/cmd/ramp/cli"
	"ramp/cmd/ramp/command"
)

var update = flag.Bool("update", false, "write the command reference in docs/CLI.md anew")

const (
	cliDocument = "../../../docs/CLI.md"
	// Everything below this line of docs/CLI.md is generated.
	generatedBelow = "<!-- generated from here on: go test ./cmd/ramp/command -run CLI -update -->\n"
)

func TestTheCLIDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(cliDocument)
	if err != nil {
		t.Fatal(err)
	}
	head, old, ok := strings.Cut(string(text), generatedBelow)
	if !ok {
		t.Fatalf("%s has no line %q", cliDocument, generatedBelow)
	}
	now := reference(t, command.Root())
	if now == old {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date; go test ./cmd/ramp/command -run CLI -update writes it", cliDocument)
	}
	if err := os.WriteFile(cliDocument, []byte(head+generatedBelow+now), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reference is a section for c, and for each command below it, in the order of the help.
// Flags that all commands of a section share stand once, where they are defined.
func reference(t *testing.T, c *cobra.Command) string {
	t.Helper()
	c.DisableAutoGenTag = true
	cli.ForReaders(c, func(*pflag.Flag) {})
	var b bytes.Buffer
	link := func(file string) string {
		return "#" + strings.ReplaceAll(strings.TrimSuffix(file, ".md"), "_", "-")
	}
	if err := doc.GenMarkdownCustom(c, &b, link); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)### Options inherited.*?\n```.*?```\n\n").ReplaceAllString(b.String(), "")
	text = strings.Replace(text, "```\n"+c.UseLine(), "```text\n"+cli.UsageOf(c), 1)
	if c.Long != "" {
		text = strings.Replace(text, c.Short+"\n\n### Synopsis\n\n", "", 1)
	}
	subs := cli.CommandsOf(c)
	if body, more, ok := strings.Cut(text, "### SEE ALSO\n\n"); ok {
		if c.HasParent() {
			_, more, _ = strings.Cut(more, "\n") // the parent comes first
		}
		if text = body; len(subs) > 0 {
			text += "### Commands\n\n" + strings.ReplaceAll(more, "\t - ", ": ")
		}
	}
	for _, sub := range subs {
		if sub.Name() != "help" && sub.Name() != "completion" {
			text += reference(t, sub)
		}
	}
	return regexp.MustCompile(`(?m)^\* \[ramp completion\].*\n`).ReplaceAllString(text, "") // it is above
}
