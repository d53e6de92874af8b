package cli

import (
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
)

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
