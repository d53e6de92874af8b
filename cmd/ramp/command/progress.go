package command

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/protocol/message"
)

// progress shows how a purchase goes on: on a terminal one table that is
// rewritten in place, elsewhere one line per change.
type progress struct {
	w      io.Writer
	live   bool
	shown  int // lines of the live table
	rounds int
	state  string
	waits  string // why the bank does not decide yet, as it was told last
}

// progressOf is the progress that a command shows: none, if it is to be quiet.
func progressOf(c *cobra.Command) *progress {
	if quiet, err := c.Flags().GetBool("quiet"); err == nil && quiet {
		return newProgress(io.Discard)
	}
	return newProgress(stderr(c))
}

func newProgress(w io.Writer) *progress { return &progress{w: w, live: isTerminal(w)} }

// purchase shows its state.
func (p *progress) purchase(v message.Purchase) {
	if p.live {
		p.redraw(p.screen(v))
		return
	}
	if p.state == "" && v.Settled {
		p.rounds = len(v.Rounds) // told when it was bought
	}
	for ; p.rounds < len(v.Rounds); p.rounds++ {
		r := v.Rounds[p.rounds]
		fmt.Fprintf(p.w, "%s: round %d: best %s, %s, %s\n", nameOf(v), r.Round, bestLine(r.Best), plural(r.Offers, "offer"), plural(r.Refusals, "refusal")+surelyBy(r.Starts))
	}
	if state := standsAs(v); state != p.state {
		p.state = state
		fmt.Fprintf(p.w, "%s: %s (%s found)%s%s\n", nameOf(v), state, plural(v.Found, "resource"), untilWords(v.Until), surelyBy(chosen(v)))
	}
	if v.Waits != p.waits {
		if p.waits = v.Waits; v.Waits != "" {
			fmt.Fprintf(p.w, "%s: %s\n", nameOf(v), waitsWords(v))
		}
	}
}

// standsAs is the state of a purchase for people: of one whose units are being taken
// back, or all are, that. Its contract was settled all the same.
func standsAs(v message.Purchase) string {
	if !v.Settled {
		return v.State
	}
	back := 0
	for _, u := range v.Units {
		switch u.State {
		case user.StateCancelling:
			return user.StateCancelling
		case user.StateCancelled:
			back++
		}
	}
	if back > 0 && back == len(v.Units) {
		return user.StateCancelled
	}
	return v.State
}

// asShown is a purchase with the state that people are told.
func asShown(p message.Purchase) message.Purchase {
	p.State = standsAs(p)
	return p
}

// waitsWords says what a purchase waits for whose bank does not decide.
func waitsWords(v message.Purchase) string {
	return "the bank does not decide yet: " + v.Waits + "; it is asked again"
}

func nameOf(v message.Purchase) string {
	if v.RFQ != "" {
		return v.RFQ
	}
	return v.ID
}

// untilWords says when a phase ends at the latest.
func untilWords(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + t.UTC().Format("15:04:05") + " UTC"
}

// screen are the lines of the live table: how it stands, and its last rounds, as
// many as there is room for.
func (p *progress) screen(v message.Purchase) []string {
	width, rows := terminalSize(p.w)
	head := fmt.Sprintf("%s: %s, %s found%s%s", nameOf(v), standsAs(v), plural(v.Found, "resource"), untilWords(v.Until), surelyBy(standing(v)))
	lines := []string{strings.Replace(cut(head, width-1), standsAs(v), stateWords(p.w, standsAs(v)), 1)}
	if v.Waits != "" {
		lines = append(lines, cut(waitsWords(v), width-1))
	}
	if len(v.Rounds) == 0 {
		return lines
	}
	list := [][]string{{"round", "best", "offers", "refusals", "time"}}
	for _, r := range lastOf(v.Rounds, max(1, rows-headLines-len(lines)+1)) {
		list = append(list, []string{fmt.Sprint(r.Round), bestLine(r.Best), fmt.Sprint(r.Offers), fmt.Sprint(r.Refusals), spent(r.MS)})
	}
	return append(lines, tableLines(list, width-1)...)
}

// headLines are the lines of the live table beside the rounds, and the one that
// the cursor stands on.
const headLines = 3

// spent prints milliseconds for people.
func spent(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// redraw writes lines over those that were shown, in one write. No line is as
// wide as the terminal: one that wraps cannot be written over.
func (p *progress) redraw(lines []string) {
	var b strings.Builder
	if p.shown > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.shown)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\r\x1b[J") // an interrupt that is echoed moves the cursor
	fmt.Fprint(p.w, b.String())
	p.shown = len(lines)
}

// note shows a sentence: on a terminal until the next one.
func (p *progress) note(s string) {
	if p.live {
		p.redraw(wrapped(s, terminalWidth(p.w)-1))
		return
	}
	fmt.Fprintln(p.w, s)
}

// say shows a sentence that stays.
func (p *progress) say(s string) { fmt.Fprintln(p.w, s) }

// wrapped parts a sentence between words into lines of at most so many letters.
func wrapped(s string, most int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= most:
			line += " " + word
		default:
			lines, line = append(lines, cut(line, most)), word
		}
	}
	return append(lines, cut(line, most))
}

// line rewrites the live table as one line.
func (p *progress) line(s string) { p.redraw([]string{cut(s, max(1, terminalWidth(p.w)-1))}) }

// end takes the live table away.
func (p *progress) end() {
	if p.live && p.shown > 0 {
		p.redraw(nil)
	}
}
