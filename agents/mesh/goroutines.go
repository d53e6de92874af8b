package mesh

import (
	"context"
	"iter"
	"sync"
	"time"
)

// lifetime owns the goroutines of a mesh and the order in which they end.
type lifetime struct {
	// start runs a goroutine until the mesh closes. startWriter runs one that may
	// empty its queue first.
	start, startWriter func(f func(ctx context.Context)) bool
	tasks, writers     group
	draining           chan struct{} // closed once nothing more may be queued
	stop               context.CancelFunc
}

func newLifetime() *lifetime {
	ctx, stop := context.WithCancel(context.Background())
	l := &lifetime{draining: make(chan struct{}), stop: stop}
	l.start = func(f func(context.Context)) bool { return l.tasks.run(func() { f(ctx) }) }
	l.startWriter = func(f func(context.Context)) bool { return l.writers.run(func() { f(ctx) }) }
	return l
}

// end gives the writers up to CloseTimeout to empty their queues, closes the host,
// and returns when every goroutine has ended. flushed reports whether the writers
// finished in time. The caller has closed draining.
func (l *lifetime) end(closeHost func() error) (flushed bool, err error) {
	written := make(chan struct{})
	go func() { defer close(written); l.writers.close() }()
	limit := time.NewTimer(CloseTimeout)
	defer limit.Stop()
	select {
	case <-written:
		flushed = true
	case <-limit.C:
	}
	l.stop()
	err = closeHost() // ends every stream, and with it whoever reads or writes one
	<-written
	l.tasks.close()
	return flushed, err
}

// group is a set of goroutines that its owner waits for. Once closed, it starts no more.
type group struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// run calls f in a new goroutine and reports whether it did.
func (g *group) run(f func()) bool {
	if !g.enter() {
		return false
	}
	go func() {
		defer g.wg.Done()
		f()
	}()
	return true
}

// call calls f in the caller's goroutine and reports whether it did.
func (g *group) call(f func()) bool {
	if !g.enter() {
		return false
	}
	defer g.wg.Done()
	f()
	return true
}

func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.wg.Add(1)
	}
	return !g.closed
}

// close returns when all goroutines have ended.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}

// inTurn calls f for every item, meetingsAtOnce at a time, and waits. An item that
// takes longer than slowDial makes room for another one.
func inTurn[T any](ctx context.Context, all iter.Seq[T], f func(ctx context.Context, item T)) {
	var running group
	free := make(chan struct{}, meetingsAtOnce)
	for item := range all {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.run(func() {
			done := sync.OnceFunc(func() { <-free })
			defer time.AfterFunc(slowDial, done).Stop()
			defer done()
			f(ctx, item)
		})
	}
	running.close()
}

// isClosed reports whether a channel that carries no values is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
