package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/words"
)

// Bounds of watching.
const (
	watchPause = 2 * time.Second
	watchLeast = 100 * time.Millisecond
	watchMost  = time.Hour
)

// Watched gives a command the flag --watch, which repeats it until it is interrupted.
func Watched(c *cobra.Command) *cobra.Command {
	var every time.Duration
	DurationVar(c.Flags(), &every, "watch", 0, "print again every `D` until interrupted (--watch alone: every 2s)")
	c.Flags().Lookup("watch").NoOptDefVal = watchPause.String()
	once := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("watch") {
			return once(c, args)
		}
		if every < watchLeast || every > watchMost {
			return exit.Fail(exit.Usage, "", "--watch %s: want %s..%s", every, watchLeast, watchMost)
		}
		return watch(c, args, every, once)
	}
	return c
}

func watch(c *cobra.Command, args []string, every time.Duration, once func(*cobra.Command, []string) error) error {
	out := Stdout(c)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		page := &page{}
		page.width, page.rows = terminalSize(out)
		c.SetOut(page)
		err := once(c, args)
		c.SetOut(out)
		if c.Context().Err() != nil {
			return nil // an interrupt is the normal end
		}
		if err != nil {
			return err
		}
		fmt.Fprint(out, page.picture(every))
		select {
		case <-tick.C:
		case <-c.Context().Done():
			return nil
		}
	}
}

// page collects what a command prints for a terminal of some size; a width of zero: no terminal.
type page struct {
	bytes.Buffer
	width, rows int
}

func (p *page) screenSize() (width, rows int) { return p.width, p.rows }

// picture is the page as printed over the previous one: on a terminal the table's heading and its
// last lines that fit, below a line with the time; elsewhere as it is.
func (p *page) picture(every time.Duration) string {
	if p.width == 0 {
		return p.String()
	}
	lines := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
	var b strings.Builder
	b.WriteString("\x1b[H")
	fmt.Fprintf(&b, "%s\x1b[K\n", words.Cut(fmt.Sprintf("every %s, at %s; Ctrl-C ends", every, words.Clock(time.Now())), p.width-1))
	for _, line := range append(lines[:1:1], lastOf(lines[1:], max(1, p.rows-3))...) {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
