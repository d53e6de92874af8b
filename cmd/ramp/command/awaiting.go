package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// noticeAfter is how long a command waits before it says for what.
const noticeAfter = 2 * time.Second

// answerTime is how long an agent has for a question of its owner to the banks.
const answerTime = 30 * time.Second

// awaiting says on standard error what a command waits for, and until when at the
// latest, once it has waited for a while. stop ends that, and takes the line away where
// it can be.
func awaiting(c *cobra.Command, what string, most time.Duration) (stop func()) {
	return awaitingAfter(progressOf(c), time.NewTimer(noticeAfter).C, what, time.Now().Add(most))
}

// awaitingAfter is awaiting with what says that a while is over.
func awaitingAfter(p *progress, while <-chan time.Time, what string, until time.Time) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			return
		case <-while:
		}
		p.note(what + untilWords(until))
		<-over
		p.end()
	}()
	return func() { close(over); <-ended }
}

// awaitDaemon is meetDaemon for a command that says so when that takes long.
func awaitDaemon(c *cobra.Command, dir string) (*caller, bool) {
	defer awaiting(c, "waiting for the daemon of "+dir+" to answer", daemonPatience)()
	return meetDaemon(dir)
}

// within bounds how long an answer takes.
func within[Q, A any](most time.Duration, f func(ctx context.Context, q Q) (A, error)) func(ctx context.Context, q Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		return f(ctx, q)
	}
}
