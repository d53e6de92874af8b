package queue_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// oneJob is a batch system with one job.
type oneJob struct {
	queue.System
	over  atomic.Bool
	ended chan struct{}
}

func (o *oneJob) State(now time.Time) (message.QueueChanged, error) {
	return message.QueueChanged{At: now}, nil
}
func (o *oneJob) Advance(time.Time) (bool, time.Time)                               { return false, time.Time{} }
func (o *oneJob) Submit(time.Time, message.Job) *protocol.Reason                    { return nil }
func (o *oneJob) Signal(time.Time, message.Job, message.JobSignal) *protocol.Reason { return nil }
func (o *oneJob) JobPace() queue.Pace {
	return queue.Pace{Least: 20 * time.Millisecond, Most: time.Hour}
}
func (o *oneJob) Ended() <-chan struct{} { return o.ended }

func (o *oneJob) Statuses(time.Time, []message.Job) (map[string]protocol.JobStatus, error) {
	s := protocol.JobStatus{State: protocol.JobRunning}
	if o.over.Load() {
		s.State = protocol.JobExited
	}
	return map[string]protocol.JobStatus{"j": s}, nil
}

// The end of a job that its batch system sees is reported at once, however rarely its jobs
// are polled by then.
func TestAnEndThatIsSeenIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oneJob{ended: make(chan struct{}, 1)}
		l := queue.NewLoop("site", o, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ends, stopped := make(chan time.Time, 1), make(chan struct{})
		go func() {
			defer close(stopped)
			_ = l.Run(ctx, func(m protocol.Message) {
				if c, ok := m.Body.(message.JobChanged); ok && c.Status.State.Over() {
					ends <- time.Now()
				}
			})
		}()
		l.Send(protocol.Message{Body: message.Submit{Job: message.Job{ID: "j", Argv: []string{"/bin/work"}}}})
		time.Sleep(5 * time.Hour)
		o.over.Store(true)
		at := time.Now()
		o.ended <- struct{}{}
		if late := (<-ends).Sub(at); late > 50*time.Millisecond {
			t.Errorf("reported after %s", late)
		}
		cancel()
		<-stopped
	})
}
