package web

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Bounds of what tabs share.
const (
	shareTime = time.Second // from the beginning of a drawing; some pages change without an event
	maxDrawn  = 64          // pages at once; beyond it all are forgotten
)

// page is a drawn view. It has nothing of a session, so all that are logged in may share it.
type page struct {
	status int
	plain  []byte
	small  func() []byte // compressed, once
	on     []string      // the kinds of events that change it
	of     string        // the purchase that these are about; empty: any
}

func (p page) send(w http.ResponseWriter, r *http.Request) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	w.Header().Set("Vary", "Accept-Encoding")
	body := p.plain
	if takes := strings.ReplaceAll(r.Header.Get("Accept-Encoding"), " ", ""); strings.Contains(takes, "gzip") && !strings.Contains(takes, "gzip;q=0") {
		w.Header().Set("Content-Encoding", "gzip")
		body = p.small()
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // an error means that the browser left
}

// drawing is a page that is drawn, or was drawn just now.
type drawing struct {
	began time.Time
	done  chan struct{} // closed when it ends
	page  page          // without a status until then
	stale bool          // an event has changed it since it began
}

// share draws a page once for all open tabs. Flush tells them of an event and drops the older
// drawing at the same time, so none of them fetches an old page afterwards.
func (l *live) share(address string, draw func() page) page {
	d, mine := l.drawingOf(address)
	if !mine {
		<-d.done
		if d.page.status == 0 { // it panicked
			return draw()
		}
		return d.page
	}
	defer close(d.done)
	p := draw()
	l.mu.Lock()
	defer l.mu.Unlock()
	d.page = p
	return p
}

// drawingOf finds a drawing, or begins one (mine), which is shared only while the agent is followed.
func (l *live) drawingOf(address string) (d *drawing, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.drawn[address]; d != nil && time.Since(d.began) < shareTime {
		return d, false
	}
	d = &drawing{began: time.Now(), done: make(chan struct{})}
	if l.stop != nil && !l.away {
		if len(l.drawn) >= maxDrawn {
			clear(l.drawn)
		}
		l.drawn[address] = d
	}
	return d, true
}

// change notes which drawings an event changes: any that is not finished may be among them.
func (l *live) change(kind, id string) {
	for _, d := range l.drawn {
		d.stale = d.stale || d.page.status == 0 || concerns(d.page.on, d.page.of, kind, id)
	}
}

// concerns reports whether an event about a purchase (empty: any) changes a page.
func concerns(on []string, of, kind, id string) bool {
	return slices.Contains(on, kind) && (of == "" || id == "" || id == of)
}

// forget drops all drawings, after something was done.
func (l *live) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.drawn)
}
