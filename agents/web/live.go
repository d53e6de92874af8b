package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"ramp/agents/control"
)

const (
	maxStreams  = 128                    // open pages that are kept up to date at once
	liveBeat    = 15 * time.Second       // between two signs of life
	livePause   = 150 * time.Millisecond // between two sets of events for a page
	liveRetry   = 250 * time.Millisecond // until the agent is asked again whether it is there
	writeTime   = 10 * time.Second       // for a browser to take what is written
	eventHello  = "hello"                // a page follows, from now on
	eventBack   = "back"                 // the agent answers again
	eventAway   = "away"                 // the agent does not answer
	eventFresh  = "fresh"                // anything may have changed
	streamRetry = 500                    // ms until a browser connects again
)

// live tells open pages what kinds of events happen. It follows the agent while anybody
// is there, once for all of them.
type live struct {
	client *control.Client
	mu     sync.Mutex
	pages  map[*openPage]bool
	stop   context.CancelFunc
	away   bool
}

// openPage collects the changes that a page has not received yet.
type openPage struct {
	kinds  map[string]bool
	signal chan struct{}
}

func newLive(c *control.Client) *live { return &live{client: c, pages: map[*openPage]bool{}} }

// join adds a page, unless there are too many.
func (l *live) join() (p *openPage, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pages) >= maxStreams {
		return nil, false
	}
	p = &openPage{kinds: map[string]bool{eventHello: true}, signal: make(chan struct{}, 1)}
	if l.away {
		p.kinds[eventAway] = true
	}
	p.signal <- struct{}{}
	l.pages[p] = true
	if l.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		l.stop = cancel
		go l.follow(ctx)
	}
	return p, true
}

func (l *live) leave(p *openPage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.pages, p); len(l.pages) == 0 {
		l.stop()
		l.stop = nil
	}
}

// follow passes the agent's events on until ctx is done. An agent that is not there is asked
// again and again.
func (l *live) follow(ctx context.Context) {
	since := uint64(0)
	for ctx.Err() == nil {
		if l.alive(ctx) == nil {
			_ = control.Events.Follow(ctx, l.client, control.EventsCall{Since: since}, func(e control.Event) error {
				since = e.Number
				l.tell(e.Kind)
				return nil
			})
		}
		if ctx.Err() == nil {
			l.setAway()
		}
		select {
		case <-time.After(liveRetry):
		case <-ctx.Done():
		}
	}
}

// alive asks the agent for a sign of life, and tells the pages if it was away.
func (l *live) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, control.StatusCallTime)
	defer cancel()
	if err := control.Agent.Ask(ctx, l.client, control.None{}, nil); err != nil {
		return err
	}
	l.mu.Lock()
	was := l.away
	l.away = false
	l.mu.Unlock()
	if was {
		l.tell(eventBack)
	}
	return nil
}

func (l *live) setAway() {
	l.mu.Lock()
	was := l.away
	l.away = true
	l.mu.Unlock()
	if !was {
		l.tell(eventAway)
	}
}

// tell notes a kind of event for every page.
func (l *live) tell(kind string) {
	if kind == control.EventGap {
		kind = eventFresh
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pages {
		switch kind {
		case eventAway:
			delete(p.kinds, eventBack)
		case eventBack:
			delete(p.kinds, eventAway)
		}
		p.kinds[kind] = true
		select {
		case p.signal <- struct{}{}:
		default: // it will see this kind too
		}
	}
}

// take returns what a page was not told yet.
func (l *live) take(p *openPage) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(p.kinds))
	clear(p.kinds)
	return kinds
}

// serve sends events to one page until it is closed.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	p, ok := l.join()
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many open pages: close some", http.StatusServiceUnavailable)
		return
	}
	defer l.leave(p)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events back
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	text := fmt.Sprintf("retry: %d\n\n", streamRetry)
	for {
		out := http.NewResponseController(w)
		_ = out.SetWriteDeadline(time.Now().Add(writeTime)) // in-process writers have none
		if _, err := fmt.Fprint(w, text); err != nil || out.Flush() != nil {
			return
		}
		text = ""
		select {
		case <-p.signal:
			for _, kind := range l.take(p) {
				text += "event: " + kind + "\ndata: 1\n\n"
			}
		case <-beat.C:
			text = "event: beat\ndata: 1\n\n"
			continue
		case <-r.Context().Done():
			return
		}
		if !pause(r.Context(), w, &text) {
			return
		}
	}
}

// pause sends what there is at once, and then waits, so that a busy agent does not have
// its pages drawn more often than people can see.
func pause(ctx context.Context, w http.ResponseWriter, text *string) bool {
	if _, err := fmt.Fprint(w, *text); err != nil || http.NewResponseController(w).Flush() != nil {
		return false
	}
	*text = ""
	select {
	case <-time.After(livePause):
		return true
	case <-ctx.Done():
		return false
	}
}
