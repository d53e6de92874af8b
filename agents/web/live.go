package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ramp/agents"
	"ramp/agents/control"
)

const (
	maxStreams  = 128                    // open pages that are kept up to date at once
	liveBeat    = 15 * time.Second       // between two signs of life
	liveBrief   = 20                     // ms for which the agent collects events
	livePauseOf = 5 * time.Millisecond   // for each open page, how long events are collected
	liveRetry   = 250 * time.Millisecond // until the agent is asked again whether it is there
	writeTime   = 10 * time.Second       // for a browser to take what is written
	eventHello  = "hello"                // a page follows, from now on
	eventBack   = "back"                 // the agent answers again
	eventAway   = "away"                 // the agent does not answer
	eventFresh  = "fresh"                // anything may have changed
	eventChange = "change"               // what the page shows has changed
	streamRetry = 500                    // ms until a browser connects again
)

// everyEvent are the kinds of events that may change some page.
var everyEvent = []string{control.EventPurchase, control.EventRun, control.EventRound, control.EventDecision, control.EventReservation, control.EventEntry}

// live tells open pages what kinds of events happen. It follows the agent while anybody
// is there, once for all of them.
type live struct {
	client *control.Client
	mu     sync.Mutex
	pages  map[*openPage]bool
	drawn  map[string]*drawing // by address
	stop   context.CancelFunc
	away   bool
	due    bool // flush is about to be called
}

// openPage collects the changes that a page has not received yet.
type openPage struct {
	on     []string        // the kinds of events that change it
	id     string          // of the purchase that it shows; empty: of any
	noted  map[string]bool // until the next flush
	told   map[string]bool // until the page has taken them
	signal chan struct{}
}

// join adds a page, unless there are too many.
func (l *live) join(on []string, id string) (p *openPage, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pages) >= maxStreams {
		return nil, false
	}
	p = &openPage{on: on, id: id, noted: map[string]bool{}, told: map[string]bool{}, signal: make(chan struct{}, 1)}
	l.pages[p] = true
	l.note(p, eventHello)
	if l.away {
		l.note(p, eventAway)
	}
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
		clear(l.drawn)
	}
}

// follow passes the agent's events on until ctx is done. An agent that is not there is asked
// again and again.
func (l *live) follow(ctx context.Context) {
	since := uint64(0)
	for ctx.Err() == nil {
		if l.alive(ctx) == nil {
			_ = control.Events.Follow(ctx, l.client, control.EventsCall{Since: since, Brief: liveBrief}, func(e control.Event) error {
				since = e.Number
				l.event(e)
				return nil
			})
		}
		if ctx.Err() == nil {
			l.setAway()
		}
		agents.Pause(ctx, liveRetry)
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

func (l *live) event(e control.Event) {
	if e.Kind == control.EventGap {
		l.tell(eventFresh)
		return
	}
	var about control.Changed
	_ = json.Unmarshal(e.Data, &about) // of no purchase, then: it may change every page
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(e.Kind, about.ID)
	for p := range l.pages {
		if concerns(p.on, p.id, e.Kind, about.ID) {
			l.note(p, eventChange)
		}
	}
}

// tell notes something for every page, after which none is what it was.
func (l *live) tell(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.drawn)
	for p := range l.pages {
		l.note(p, kind)
	}
}

// note notes something for a page, and waits for more, longer if many pages are open.
func (l *live) note(p *openPage, kind string) {
	put(p.noted, kind)
	if !l.due {
		l.due = true
		time.AfterFunc(time.Duration(len(l.pages))*livePauseOf, l.flush)
	}
}

// put adds a kind, and takes away what it ends.
func put(kinds map[string]bool, kind string) {
	delete(kinds, map[string]string{eventAway: eventBack, eventBack: eventAway}[kind])
	kinds[kind] = true
}

// flush tells all pages at once what was noted for them, and drops older drawings.
func (l *live) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = false
	maps.DeleteFunc(l.drawn, func(_ string, d *drawing) bool { return d.stale })
	for p := range l.pages {
		for kind := range p.noted {
			put(p.told, kind)
		}
		clear(p.noted)
		agents.Signal(p.signal)
	}
}

// take returns the events that a page has not been sent yet.
func (l *live) take(p *openPage) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(p.told))
	clear(p.told)
	return kinds
}

// serve sends events to one page until it is closed.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	p, ok := l.join(strings.Split(r.URL.Query().Get("on"), ","), r.URL.Query().Get("id"))
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
		case <-beat.C:
			text = "event: beat\ndata: 1\n\n"
			continue
		case <-r.Context().Done():
			return
		}
		for _, kind := range l.take(p) {
			text += "event: " + kind + "\ndata: 1\n\n"
		}
	}
}
