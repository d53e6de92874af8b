package command

import (
	"fmt"
	"io"
	"strings"

	"ramp/protocol/message"
)

// progress shows how a purchase goes on: on a terminal one line that is
// rewritten, elsewhere one line per change.
type progress struct {
	w      io.Writer
	live   bool
	shown  int // letters on the live line
	rounds int
	state  string
}

func newProgress(w io.Writer) *progress { return &progress{w: w, live: isTerminal(w)} }

// purchase shows its state.
func (p *progress) purchase(v message.Purchase) {
	if p.live {
		p.line(fmt.Sprintf("%s: %s, %d found%s", nameOf(v), v.State, v.Found, roundText(v)))
		return
	}
	if p.state == "" && v.Settled {
		p.rounds = len(v.Rounds) // told when it was bought
	}
	for ; p.rounds < len(v.Rounds); p.rounds++ {
		r := v.Rounds[p.rounds]
		fmt.Fprintf(p.w, "%s: round %d: best %s, %s, %s\n", nameOf(v), r.Round, bestLine(r.Best), plural(r.Offers, "offer"), plural(r.Refusals, "refusal"))
	}
	if v.State != p.state {
		p.state = v.State
		fmt.Fprintf(p.w, "%s: %s (%s found)\n", nameOf(v), v.State, plural(v.Found, "resource"))
	}
}

func nameOf(v message.Purchase) string {
	if v.RFQ != "" {
		return v.RFQ
	}
	return v.ID
}

func roundText(v message.Purchase) string {
	if len(v.Rounds) == 0 {
		return ""
	}
	r := v.Rounds[len(v.Rounds)-1]
	return fmt.Sprintf(", round %d: best %s, %s", r.Round, bestLine(r.Best), plural(r.Offers, "offer"))
}

// line rewrites the live line, in one write and never longer than the terminal
// is wide: a line that wraps cannot be rewritten.
func (p *progress) line(s string) {
	letters := []rune(s)
	if most := max(1, terminalWidth(p.w)-1); len(letters) > most {
		letters = append(letters[:most-1], '…')
	}
	pad := max(0, p.shown-len(letters))
	fmt.Fprint(p.w, "\r"+string(letters)+strings.Repeat(" ", pad)+strings.Repeat("\b", pad))
	p.shown = len(letters)
}

// end takes the live line away.
func (p *progress) end() {
	if p.live && p.shown > 0 {
		p.line("")
		fmt.Fprint(p.w, "\r")
	}
}
