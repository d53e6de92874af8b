package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/journal"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// WebFigures are the figures of pages; the names are fixed. Times are in milliseconds.
type WebFigures struct {
	Purchases  int     `json:"purchases"`
	Gets       int     `json:"gets"` // of each page
	List       float64 `json:"list_median_ms"`
	ListP95    float64 `json:"list_p95_ms"`
	Page       float64 `json:"page_median_ms"`
	PageP95    float64 `json:"page_p95_ms"`
	Static     float64 `json:"static_median_ms"` // the bytes of the list from memory
	StaticP95  float64 `json:"static_p95_ms"`
	Rounds     int     `json:"rounds"` // that were seen to close
	Visible    float64 `json:"visible_median_ms"`
	VisibleP95 float64 `json:"visible_p95_ms"`
	Tabs       int     `json:"tabs"`
	Auctions   int     `json:"auctions"` // of each kind
	Alone      float64 `json:"auction_alone_median_ms"`
	Watched    float64 `json:"auction_watched_median_ms"`
	Cost       float64 `json:"cost"` // what tabs add, as a share
}

// CopyPurchases gives the journal of an agent that does not run n purchases like one of its own.
func CopyPurchases(dir, id string, n int) error {
	j, err := journal.Open(filepath.Join(dir, config.JournalName), 0)
	if err != nil {
		return err
	}
	return errors.Join(copyPurchases(j, id, n), j.Close())
}

func copyPurchases(j *journal.Journal, id string, n int) error {
	value, err := j.Get(user.TablePurchases, id)
	if err != nil {
		return err
	}
	row, err := user.ReadRow(value)
	if err != nil {
		return err
	}
	const together = 500
	var records []protocol.Record
	for i := range n {
		row.ID = control.NewPurchaseID(false)
		row.Created = row.Created.Add(-time.Minute)
		value, err := json.Marshal(row)
		if err != nil {
			return err
		}
		records = append(records, protocol.Record{Table: user.TablePurchases, Key: row.ID, Value: value})
		if len(records) == together || i == n-1 {
			if err := j.Append(records); err != nil {
				return err
			}
			records = records[:0]
		}
	}
	return nil
}

// Browser asks for pages as a browser does.
type Browser struct {
	base    string
	client  http.Client
	cookies []*http.Cookie
}

// NewBrowser logs in by a link.
func NewBrowser(link string) (*Browser, error) {
	base, token, _ := strings.Cut(link, "/login#")
	b := &Browser{base: base, client: http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	r, err := b.client.PostForm(base+"/login", url.Values{"token": {token}})
	if err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	if b.cookies = r.Cookies(); len(b.cookies) == 0 {
		return nil, fmt.Errorf("the link does not log in: %s", r.Status)
	}
	return b, nil
}

func (b *Browser) request(ctx context.Context, path string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, c := range b.cookies {
		req.AddCookie(c)
	}
	return req, nil
}

// get fetches a page, compressed if that is wanted, as a person or an open tab does.
func (b *Browser) get(ctx context.Context, path string, zip, again bool) (body []byte, err error) {
	req, err := b.request(ctx, path)
	if err != nil {
		return nil, err
	}
	if again {
		req.Header.Set("HX-Request", "true")
	}
	if zip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	r, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	body, err = io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, r.Status)
	}
	return body, err
}

// MeasurePages fetches the list and a page n times each, in turn with the same bytes from memory.
func (b *Browser) MeasurePages(ctx context.Context, id string, n int, f *WebFigures) error {
	list, err := b.get(ctx, "/", true, false)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	memory := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(list) // its reader fails then
	})}
	served := make(chan error, 1)
	go func() { served <- memory.Serve(l) }()
	defer func() { _ = errors.Join(memory.Close(), <-served) }()
	static := &Browser{base: "http://" + l.Addr().String(), client: http.Client{Transport: &http.Transport{DisableCompression: true}}}
	var lists, pages, statics []time.Duration
	for range n {
		for _, x := range []struct {
			b    *Browser
			path string
			to   *[]time.Duration
		}{{b, "/", &lists}, {b, "/purchase/" + id, &pages}, {static, "/", &statics}} {
			began := time.Now()
			if _, err := x.b.get(ctx, x.path, true, false); err != nil {
				return err
			}
			*x.to = append(*x.to, time.Since(began))
		}
	}
	f.Gets = n
	f.List, f.ListP95 = Quantile(lists, .5), Quantile(lists, .95)
	f.Page, f.PageP95 = Quantile(pages, .5), Quantile(pages, .95)
	f.Static, f.StaticP95 = Quantile(statics, .5), Quantile(statics, .95)
	return nil
}

// tab is an open page: it fetches itself again at every event.
type tab struct {
	b       *Browser
	address string
	events  string
	seen    func(page []byte, at time.Time)
	mu      sync.Mutex
	began   time.Time // the last fetch that is complete
}

// follow keeps a tab open until the context is done.
func (t *tab) follow(ctx context.Context) error {
	req, err := t.b.request(ctx, t.events)
	if err != nil {
		return err
	}
	r, err := t.b.client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if kind, is := strings.CutPrefix(lines.Text(), "event: "); !is || kind == "beat" {
			continue
		}
		began := time.Now()
		page, err := t.b.get(ctx, t.address, t.seen == nil, true)
		if err != nil {
			return err
		}
		if t.seen != nil {
			t.seen(page, time.Now())
		}
		t.mu.Lock()
		t.began = began
		t.mu.Unlock()
	}
	return errors.New("the events of an open page have ended")
}

// upToDate reports whether a tab has fetched itself since a moment.
func (t *tab) upToDate(at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began.After(at)
}

// hold holds an auction of three rounds, buys what it finds if that is wanted, and calls f at
// every change.
func hold(ctx context.Context, agent *control.Client, id string, buys bool, f func(message.Purchase)) (last message.Purchase, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := time.Now().Truncate(time.Second)
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{{
		Name: "bench", Price: 70 * protocol.Credit, TotalCores: 16, NotBefore: now.Add(time.Hour), End: now.Add(2 * time.Hour), Wall: time.Hour,
	}}}, now)
	if err != nil {
		return last, err
	}
	q := control.BuyCall{ID: id, Name: "bench", Document: string(doc.XML()), Options: message.Options{Rounds: 3, Confirm: true}}
	answer := sync.OnceValue(func() error { return control.Approve.Ask(ctx, agent, control.IDCall{ID: id, Yes: buys}, nil) })
	found := false
	err = control.Buy.Follow(ctx, agent, q, func(l control.ProgressLine) error {
		last = l.Purchase
		if f(last); last.State == user.StateApproval {
			found = true
			return answer()
		}
		return nil
	})
	if err == nil && (!found || last.Settled != buys) {
		err = fmt.Errorf("%s: %s (%v)", last.State, last.Why, last.Reasons)
	}
	return last, err
}

// patience is how long an auction and its page may take.
const patience = 30 * time.Second

// Purchase buys something, to have it.
func Purchase(ctx context.Context, agent *control.Client) (id string, err error) {
	id = control.NewPurchaseID(false)
	_, err = hold(ctx, agent, id, true, func(message.Purchase) {})
	return id, err
}

// closedRound finds the rounds that a page shows as closed.
var closedRound = regexp.MustCompile(`<div><bdi>Round (\d+)</bdi>`)

// roundWatch notes when the rounds of an auction are closed, and when a page shows that.
type roundWatch struct {
	mu              sync.Mutex
	closed, visible map[int]time.Time
	rounds          int           // in total; 0: not known yet
	all             chan struct{} // closed when every round was seen
}

// seen notes the rounds that a page shows.
func (w *roundWatch) seen(page []byte, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range closedRound.FindAllSubmatch(page, -1) {
		n, _ := strconv.Atoi(string(m[1])) // the pattern has digits only
		if w.visible[n].IsZero() {
			w.visible[n] = at
		}
	}
	w.check()
}

// known notes the rounds that the agent knows to be closed; over: there are no more.
func (w *roundWatch) known(rounds int, over bool) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range rounds {
		if w.closed[n+1].IsZero() {
			w.closed[n+1] = now
		}
	}
	if over {
		w.rounds = rounds
		w.check()
	}
}

func (w *roundWatch) check() {
	select {
	case <-w.all:
	default:
		if w.rounds > 0 && len(w.visible) >= w.rounds {
			close(w.all)
		}
	}
}

// MeasureRounds holds auctions and measures how long after the agent knows that a round is closed
// a page shows it.
func (b *Browser) MeasureRounds(ctx context.Context, agent *control.Client, auctions int, f *WebFigures) error {
	var late []time.Duration
	for range auctions {
		w := &roundWatch{closed: map[int]time.Time{}, visible: map[int]time.Time{}, all: make(chan struct{})}
		if err := b.watchRounds(ctx, agent, w); err != nil {
			return err
		}
		for n, at := range w.closed {
			late = append(late, max(0, w.visible[n].Sub(at)))
		}
	}
	f.Rounds, f.Visible, f.VisibleP95 = len(late), Quantile(late, .5), Quantile(late, .95)
	return nil
}

// watchRounds holds an auction beside its page.
func (b *Browser) watchRounds(ctx context.Context, agent *control.Client, w *roundWatch) error {
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	id := control.NewPurchaseID(false)
	t := &tab{b: b, address: "/purchase/" + id, events: "/live?on=purchase,round&id=" + id, seen: w.seen}
	failed := make(chan error, 1)
	var open sync.Once
	p, err := hold(ctx, agent, id, false, func(p message.Purchase) {
		w.known(len(p.Rounds), false)
		if control.Purchase.Ask(ctx, agent, control.IDCall{ID: id}, nil) == nil { // it has a page from now on
			open.Do(func() { following.Go(func() { failed <- t.follow(ctx) }) })
		}
	})
	if err != nil {
		return err
	}
	w.known(len(p.Rounds), true)
	select {
	case <-w.all:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return errors.New("an open page does not show every round")
	}
}

// MeasureTabs holds auctions beside no tab and beside n tabs with the list, in turn.
func (b *Browser) MeasureTabs(ctx context.Context, agent *control.Client, n, auctions int, f *WebFigures) error {
	const together = 10
	times := map[bool][]time.Duration{}
	for i := 0; len(times[false]) < auctions || len(times[true]) < auctions; i++ {
		watched, open := i%4 == 1 || i%4 == 2, 0
		if watched {
			open = n
		}
		err := b.beside(ctx, open, func(ctx context.Context, tabs []*tab) error {
			return batch(ctx, agent, tabs, together, func(d time.Duration) { times[watched] = append(times[watched], d) })
		})
		if err != nil {
			return err
		}
	}
	f.Tabs, f.Auctions = n, len(times[true])
	f.Alone, f.Watched = Quantile(times[false], .5), Quantile(times[true], .5)
	f.Cost = f.Watched/f.Alone - 1
	return nil
}

// beside calls f while n tabs show the list. A tab that fails ends the context of f.
func (b *Browser) beside(ctx context.Context, n int, f func(ctx context.Context, tabs []*tab) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel(nil)
	var tabs []*tab
	for range n {
		t := &tab{b: b, address: "/", events: "/live?on=purchase"}
		tabs = append(tabs, t)
		following.Go(func() {
			if err := t.follow(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	err := f(ctx, tabs)
	return cmp.Or(context.Cause(ctx), err)
}

// think is how long a person takes between two auctions, and shown how long tabs are waited
// for at most: one may have shown the end of an auction just before that was noted here.
const (
	think = 200 * time.Millisecond
	shown = time.Second
)

// batch holds auctions; each begins a while after the tabs show the end of the last one.
func batch(ctx context.Context, agent *control.Client, tabs []*tab, n int, took func(time.Duration)) error {
	for last := time.Now(); n > 0; {
		if !agents.Pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
		if since := time.Since(last); since < think || since < shown && slices.ContainsFunc(tabs, func(t *tab) bool { return !t.upToDate(last) }) {
			continue
		}
		n--
		p, err := hold(ctx, agent, control.NewPurchaseID(false), false, func(message.Purchase) {})
		if err != nil {
			return err
		}
		took(time.Duration(p.AuctionMS * float64(time.Millisecond)))
		last = time.Now()
	}
	return nil
}
