package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"

	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// Whatever a peer writes into a text, a command prints as many lines as with any other one,
// and no terminal obeys them.
func TestNoTextOfAnotherControlsTheOutput(t *testing.T) {
	for name, write := range map[string]func(w io.Writer, text string){
		"a table":  func(w io.Writer, text string) { cli.Table(w, []string{"site", "why"}, []string{text, text}) },
		"JSON":     func(w io.Writer, text string) { must(t, words.PrintJSON(w, map[string]string{"k" + text: text}, "")) },
		"an error": func(w io.Writer, text string) { cli.Report(w, errors.New(text)) },
		"progress": func(w io.Writer, text string) {
			p := message.Purchase{RFQ: "job" + text, State: user.StateBidding, Notes: []string{text}, Waits: text}
			p.Rounds = []message.Round{{Round: 1}}
			cli.PrintedProgress(w, p)
		},
	} {
		var plain bytes.Buffer
		write(&plain, "plain")
		for _, text := range []string{
			"two\nlines", "a\r\nramp: forged", "\x1b[2J\x1b]0;title\a", "\u202egpj.exe", "\u009b2J", "\u2028next\u2029", "\x00\x7f\xff\xfe",
			`"quoted" \" {} {{.}} %s $(id) </svg>`, `","state":"settled","x":"`, strings.Repeat("10 kB ", 1700),
		} {
			var b bytes.Buffer
			write(&b, text)
			got := strings.TrimSuffix(b.String(), "\n")
			if strings.Count(b.String(), "\n") != strings.Count(plain.String(), "\n") {
				t.Errorf("%s: %.40q changes the number of lines: %.200q", name, text, got)
			}
			for line := range strings.SplitSeq(got, "\n") {
				if i := strings.IndexFunc(line, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }); i >= 0 {
					t.Errorf("%s: %.40q is printed with a character for terminals: %.200q", name, text, line)
				}
			}
			var back map[string]string
			if name == "JSON" && (json.Unmarshal(b.Bytes(), &back) != nil || back["k"+strings.ToValidUTF8(text, "\ufffd\ufffd")] == "") {
				t.Errorf("%.40q is read back as %.200q", text, back)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
