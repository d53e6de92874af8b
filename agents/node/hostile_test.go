package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ramp/agents/meters"
	bankbooks "ramp/bank/books"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/message"
)

// longest is what a line may have for one text: every byte of it quoted twice.
const longest = 8 * protocol.MaxWords

// Whatever a peer, a program or a site writes into a text, no line of a log, of the books or
// of a message as ACL is begun by it, no terminal obeys it, and it is bounded.
func TestNoTextOfAnotherWritesALine(t *testing.T) {
	for _, text := range []string{
		"two\nlines", "a\r\nlevel=ERROR msg=forged", "\x1b[2J\x1b]0;title\a", "\u202egpj.exe", "\u009b2J", "\u2028next\u2029", "\x00\xff\xfe",
		`"quoted" \" {} {{.}} %s $(id) </svg>`, "; note | pipe  * 9999-01-01", `","level":"ERROR","x":"`, strings.Repeat("10 kB ", 1700),
	} {
		for name, write := range hostileWriters(t) {
			want, got := lines(write, "plain"), lines(write, text)
			if len(got) != len(want) {
				t.Errorf("%s: %.40q makes %d lines of %d: %q", name, text, len(got), len(want), got)
			}
			for _, line := range got {
				if i := strings.IndexFunc(line, obeyed); i >= 0 || len(line) > longest {
					t.Errorf("%s: %.40q is written in %d bytes, with a character for terminals at %d: %.200q", name, text, len(line), i, line)
				}
			}
		}
	}
}

// obeyed reports whether a terminal may do anything but show a character.
func obeyed(c rune) bool { return c != ' ' && !unicode.IsPrint(c) || c == unicode.ReplacementChar }

func lines(write func(w io.Writer, text string), text string) []string {
	var b bytes.Buffer
	write(&b, text)
	return strings.Split(b.String(), "\n")
}

func hostileWriters(t *testing.T) map[string]func(w io.Writer, text string) {
	log := func(logger func(w io.Writer) *slog.Logger) func(io.Writer, string) {
		return func(w io.Writer, text string) {
			l := logger(w).With("from", text)
			l.Warn("refused", "why", text, "err", fmt.Errorf("site: %w", errors.New(text)), "addresses", []string{text, text})
			l.Error(text)
		}
	}
	daemon := func(format string) func(io.Writer, string) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte("log: {format: "+format+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return log(func(w io.Writer) *slog.Logger { return DaemonLog(w, path) })
	}
	return map[string]func(w io.Writer, text string){
		"a command's log": log(CommandLog),
		"a text log":      daemon("text"),
		"a JSON log":      daemon("json"),
		"the books": func(w io.Writer, text string) {
			legs := []ledger.Leg{{Account: protocol.AgentID("ann:" + text), Currency: "CPU", Amount: 5}, {Account: ledger.GroupID(text), Currency: "CPU", Amount: -5}}
			for _, l := range legs {
				names, err := bankbooks.Preamble(io.Discard, "bank", []string{"CPU"})
				if err == nil {
					err = names.Declare(w, l.Account, l.Currency, l.Amount)
				}
				if err != nil {
					t.Error(err)
				}
			}
			if err := bankbooks.Journal(w, ledger.Entry{Number: 1, Time: time.Unix(0, 0), Kind: ledger.KindTransfer, Legs: legs, Ref: text}); err != nil {
				t.Error(err)
			}
		},
		"metrics": func(w io.Writer, text string) {
			m := meters.New("ann@0") // no peer names it
			m.See(time.Now(), true, protocol.Message{Performative: protocol.Refuse, Body: message.Refused(protocol.CodeBusy, text)})
			page := httptest.NewRecorder()
			promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
			for line := range strings.Lines(page.Body.String()) {
				if strings.HasPrefix(line, "ramp_agent_info") || strings.Contains(line, "refus") || !strings.Contains(line, "ramp_") && !strings.Contains(line, "go_") && !strings.Contains(line, "process_") {
					fmt.Fprint(w, line)
				}
			}
		},
		"a message as ACL": func(w io.Writer, text string) {
			m := acl.Message{Performative: protocol.Inform, Content: acl.Content{Text: protocol.Words(text)}}
			_, _ = w.Write(acl.Format(m)) // to memory
		},
	}
}
