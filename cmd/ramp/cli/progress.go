package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/order"
	"ramp/agents/user"
	"ramp/agents/words"
	"ramp/protocol/message"
)

// Progress shows the progress of a purchase: on a terminal as a table that is redrawn in place,
// elsewhere as one line per change.
type Progress struct {
	W      io.Writer
	Live   bool
	shown  int // lines of the live table
	rounds int // the last values that were printed
	noted  int
	state  string
	waits  string
}

// ProgressOf is the progress of a command: discarded with --quiet.
func ProgressOf(c *cobra.Command) *Progress {
	if Quiet(c) {
		return NewProgress(io.Discard)
	}
	return NewProgress(Stderr(c))
}

// Quiet reports whether only results and errors are shown.
func Quiet(c *cobra.Command) bool {
	quiet, err := c.Flags().GetBool("quiet")
	return err == nil && quiet
}

// Notes is where a command writes what is neither its result nor an error: nowhere with --quiet.
func Notes(c *cobra.Command) io.Writer { return ProgressOf(c).W }

func NewProgress(w io.Writer) *Progress { return &Progress{W: w, Live: isTerminal(w)} }

// SoFar shows a line on a terminal only.
func (p *Progress) SoFar(format string, args ...any) {
	if p.Live {
		p.Line(fmt.Sprintf(format, args...))
	}
}

// Purchase shows the state of a purchase.
func (p *Progress) Purchase(v message.Purchase) {
	for ; p.noted < len(v.Notes); p.noted++ {
		p.Say(NameOf(v) + ": " + v.Notes[p.noted])
	}
	if p.Live {
		p.redraw(p.screen(v))
		return
	}
	if p.state == "" && v.Settled {
		p.rounds = len(v.Rounds) // printed when it was bought
	}
	for ; p.rounds < len(v.Rounds); p.rounds++ {
		r := v.Rounds[p.rounds]
		p.Say(fmt.Sprintf("%s: round %d: best %s, %s, %s", NameOf(v), r.Round, order.BestLine(r.Best), words.Plural(r.Offers, "offer"), words.Plural(r.Refusals, "refusal")+surelyBy(r.Starts)))
	}
	if state := StandsAs(v); state != p.state {
		p.state = state
		p.Say(fmt.Sprintf("%s: %s (%s found)%s%s", NameOf(v), state, words.Plural(v.Found, "resource"), offerWords(v, time.Now())+UntilWords(v.Until), surelyBy(chosen(v))))
	}
	if v.Waits != p.waits {
		if p.waits = v.Waits; v.Waits != "" {
			p.Say(NameOf(v) + ": " + waitsWords(v))
		}
	}
}

// StandsAs is the state of a purchase for people: cancelling or cancelled if its units are being
// taken back or were, although the contract was settled.
func StandsAs(v message.Purchase) string {
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

// AsShown is a purchase with its state for people.
func AsShown(p message.Purchase) message.Purchase {
	p.State = StandsAs(p)
	return p
}

// waitsWords say why the bank has not decided.
func waitsWords(v message.Purchase) string {
	return "the bank has not decided yet: " + v.Waits + "; asking again"
}

// NameOf is the name of a purchase, or its ID.
func NameOf(v message.Purchase) string {
	if v.RFQ != "" {
		return v.RFQ
	}
	return v.ID
}

// UntilWords are the latest end of a phase.
func UntilWords(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", until " + words.Clock(t)
}

// screen are the lines of the live table: the state, and as many of the last rounds as fit.
func (p *Progress) screen(v message.Purchase) []string {
	width, rows := terminalSize(p.W)
	head := words.ForPeople(fmt.Sprintf("%s: %s, %s found%s%s", NameOf(v), StandsAs(v), words.Plural(v.Found, "resource"), offerWords(v, time.Now())+UntilWords(v.Until), surelyBy(standing(v))))
	lines := []string{strings.Replace(words.Cut(head, width-1), StandsAs(v), stateWords(p.W, StandsAs(v)), 1)}
	if v.Waits != "" {
		lines = append(lines, words.Cut(words.ForPeople(waitsWords(v)), width-1))
	}
	if len(v.Rounds) == 0 {
		return lines
	}
	list := [][]string{{"round", "best", "offers", "refusals", "time"}}
	for _, r := range lastOf(v.Rounds, max(1, rows-headLines-len(lines)+1)) {
		list = append(list, []string{fmt.Sprint(r.Round), order.BestLine(r.Best), fmt.Sprint(r.Offers), fmt.Sprint(r.Refusals), spent(r.MS)})
	}
	return append(lines, words.Columns(list, width-1)...)
}

// headLines counts the lines of the live table that are not rounds, and the cursor's line.
const headLines = 3

// spent formats milliseconds for people.
func spent(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// redraw overwrites the lines shown before, in one write. Lines must be narrower than the
// terminal: a line that wraps cannot be overwritten.
func (p *Progress) redraw(lines []string) {
	var b strings.Builder
	if p.shown > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.shown)
	}
	for _, line := range lines {
		b.WriteString("\r" + line + "\x1b[K\n")
	}
	b.WriteString("\r\x1b[J") // an echoed ^C has moved the cursor
	fmt.Fprint(p.W, b.String())
	p.shown = len(lines)
}

// Note shows a sentence; on a terminal the next output replaces it.
func (p *Progress) Note(s string) {
	if p.Live {
		p.redraw(words.Wrapped(words.ForPeople(s), terminalWidth(p.W)-1))
		return
	}
	p.Say(s)
}

// Say shows a sentence that stays. Another agent may have written a part of it.
func (p *Progress) Say(s string) { fmt.Fprintln(p.W, words.ForPeople(s)) }

// Line rewrites the live table as one line.
func (p *Progress) Line(s string) {
	p.redraw([]string{words.Cut(words.ForPeople(s), max(1, terminalWidth(p.W)-1))})
}

// Screen redraws what show prints, as many lines as fit, on a terminal only.
func (p *Progress) Screen(show func(w io.Writer)) {
	if !p.Live {
		return
	}
	to := &page{}
	to.width, to.rows = terminalSize(p.W)
	show(to)
	lines := strings.Split(strings.TrimSuffix(to.String(), "\n"), "\n")
	if most := max(2, to.rows-1); len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("and %s", words.Plural(len(lines)-most+1, "more line")))
	}
	for i := range lines {
		lines[i] = words.Cut(lines[i], to.width-1)
	}
	p.redraw(lines)
}

// End erases the live table.
func (p *Progress) End() {
	if p.Live && p.shown > 0 {
		p.redraw(nil)
	}
}

// noticeAfter is how long a command waits before it reports what it is waiting for.
const noticeAfter = 2 * time.Second

// Awaiting reports on standard error what a command is waiting for, and for how long at most,
// once it has waited for a while. stop ends the wait and erases the line on a terminal.
func Awaiting(c *cobra.Command, what string, most time.Duration) (stop func()) {
	return awaitingAfter(ProgressOf(c), time.NewTimer(noticeAfter).C, what, time.Now().Add(most))
}

// awaitingAfter is Awaiting with a channel that tells when to report.
func awaitingAfter(p *Progress, report <-chan time.Time, what string, until time.Time) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			return
		case <-report:
		}
		p.Note(what + UntilWords(until))
		<-over
		p.End()
	}()
	return func() { close(over); <-ended }
}

// awaitDaemon connects to the daemon of a directory, and reports if that takes long.
func awaitDaemon(c *cobra.Command, dir string) (*control.Client, bool) {
	defer Awaiting(c, "waiting for the daemon of "+dir+" to answer", control.DaemonPatience)()
	return control.Meet(dir)
}
