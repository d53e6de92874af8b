package command

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Bounds of watching.
const (
	watchPause = 2 * time.Second
	watchLeast = 100 * time.Millisecond
	watchMost  = time.Hour
)

// watchable are the lists that can be watched.
func watchable() []string {
	return []string{
		"user list", "user jobs", "user show", "user resources", "user balance", "resource balance", "resource offers", "resource reservations", "resource jobs",
		"bank balance", "bank statement", "bank account list", "bank hold list", "bank dispute list", "bank report", "status",
	}
}

// watchLists gives the lists that there are the flag --watch.
func watchLists(root *cobra.Command) {
	for _, name := range watchable() {
		c, rest, err := root.Find(strings.Fields(name))
		if err == nil && len(rest) == 0 && c.RunE != nil {
			watched(c)
		}
	}
}

// watched makes a command print again and again with --watch, until it is
// interrupted.
func watched(c *cobra.Command) {
	var every time.Duration
	durationVar(c.Flags(), &every, "watch", 0, "print again every so often until interrupted (--watch: every 2s)")
	c.Flags().Lookup("watch").NoOptDefVal = watchPause.String()
	once := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("watch") {
			return once(c, args)
		}
		if every < watchLeast || every > watchMost {
			return fail(exitUsage, "", "--watch %s: want %s..%s", every, watchLeast, watchMost)
		}
		return watch(c, args, every, once)
	}
}

func watch(c *cobra.Command, args []string, every time.Duration, once func(*cobra.Command, []string) error) error {
	out := stdout(c)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		page := &page{}
		page.width, page.rows = terminalSize(out)
		c.SetOut(page)
		err := once(c, args)
		c.SetOut(out)
		if c.Context().Err() != nil {
			return nil // interrupted: that is how watching ends
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

// page is what a command printed for a terminal of some size; zero: for none.
type page struct {
	bytes.Buffer
	width, rows int
}

func (p *page) screenSize() (width, rows int) { return p.width, p.rows }

// picture is the page as it is written over the last one: on a terminal its last
// lines that fit, under a line that says when; elsewhere as it is.
func (p *page) picture(every time.Duration) string {
	if p.width == 0 {
		return p.String()
	}
	lines := strings.Split(strings.TrimSuffix(p.String(), "\n"), "\n")
	var b strings.Builder
	b.WriteString("\x1b[H")
	fmt.Fprintf(&b, "%s\x1b[K\n", cut(fmt.Sprintf("every %s, at %s UTC; Ctrl-C ends", every, time.Now().UTC().Format("15:04:05")), p.width-1))
	for _, line := range append(lines[:1:1], lastOf(lines[1:], max(1, p.rows-3))...) {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
