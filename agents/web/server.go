package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/protocol"
)

// Config describes the agent whose pages are served.
type Config struct {
	Kind    control.Kind
	Agent   protocol.AgentID
	Client  *control.Client
	Command string // the command that makes a new link
	// Origin is that of a proxy, such as https://hpc.example.org; empty: none.
	Origin string
	Prefix string // of all paths, such as /ramp/ann; empty: none
	Now    func() time.Time
}

// Server has the pages of one agent.
type Server struct {
	cfg      Config
	sessions sessions
	live     *live
	pages    http.Handler
	nav      []navItem

	following chan struct{} // one for each program that a page follows
}

// AnswerTime is how long a page may wait for its agent.
const AnswerTime = control.AnswerTime + 5*time.Second

// New makes the pages of an agent.
func New(cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, sessions: newSessions(cfg.Kind, cfg.Agent, cfg.Now), following: make(chan struct{}, liveStreams)}
	s.live = &live{client: cfg.Client, pages: map[*openPage]bool{}, drawn: map[string]*drawing{}}
	mux := http.NewServeMux()
	switch cfg.Kind {
	case control.User:
		userPages{s}.routes(mux)
	case control.Resource:
		sitePages{s}.routes(mux)
	case control.Bank:
		bankPages{s}.routes(mux)
	}
	mux.HandleFunc("GET /live", s.live.serve)
	mux.HandleFunc("/", s.notFound)
	s.pages = mux
	return s
}

// Link is the address that logs a browser in once. base is where the browser reaches the
// pages, without their prefix.
func (s *Server) Link(base string) string {
	return strings.TrimSuffix(base, "/") + s.path("/login") + "#" + s.sessions.token()
}

func (s *Server) path(p string) string { return root(s.cfg.Prefix).path(p) }

// ServeHTTP guards, and then answers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if fault := s.guard(w, r); fault != nil {
		s.refuse(w, r, fault)
		return
	}
	r.URL.Path = strings.TrimPrefix(r.URL.Path, s.cfg.Prefix)
	r.URL.RawPath = ""
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, assetPath):
		serveAsset(w, r)
	case p == "": // the prefix without its slash
		http.Redirect(w, r, s.path("/"), http.StatusSeeOther)
	case p == "/favicon.ico":
		w.Header().Set("Cache-Control", "max-age=86400")
		w.WriteHeader(http.StatusNoContent)
	case p == "/login":
		s.login(w, r)
	case !s.sessions.has(r):
		s.notLoggedIn(w, r)
	default:
		s.pages.ServeHTTP(w, r)
		if r.Method == http.MethodPost {
			s.live.forget() // whoever did something sees it
		}
	}
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusNotFound, view{Title: "There is no such page", Blocks: []block{{Note: &note{Kind: "bad", Text: "No page has the address " + r.URL.Path + "."}, Links: []link{{"First page", "/"}}}}})
}

// notLoggedIn sends a person to the login, and tells a script that it must reload.
func (s *Server) notLoggedIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", s.path("/login"))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, s.path("/login"), http.StatusSeeOther)
}

func (s *Server) page(mux *http.ServeMux, pattern string, f viewer) { s.view(mux, "GET "+pattern, f) }

// part answers a form with a fragment of the page that it is on.
func (s *Server) part(mux *http.ServeMux, pattern string, f viewer) { s.view(mux, "POST "+pattern, f) }

type viewer = func(ctx context.Context, r *http.Request) (view, error)

func (s *Server) view(mux *http.ServeMux, pattern string, f viewer) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		draw := func(ctx context.Context) page {
			ctx, cancel := context.WithTimeout(ctx, AnswerTime)
			defer cancel()
			v, err := f(ctx, r)
			if err != nil {
				return s.failure(r, err)
			}
			return s.draw(r, http.StatusOK, v)
		}
		if r.Method != http.MethodGet || r.Header.Get("HX-Request") == "" { // a person asks, not an open tab
			draw(r.Context()).send(w, r)
			return
		}
		others := context.WithoutCancel(r.Context()) // they want the page even if this tab is closed
		s.live.share(r.URL.RequestURI(), func() page { return draw(others) }).send(w, r)
	})
}

// act answers a form: it does something, and sends the browser to a page that shows it.
func (s *Server) act(mux *http.ServeMux, pattern string, f func(ctx context.Context, form url.Values) (next string, err error)) {
	mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), AnswerTime)
		defer cancel()
		next, err := f(ctx, r.PostForm)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		http.Redirect(w, r, s.path(next), http.StatusSeeOther)
	})
}

// ask makes a call of the agent that is open to browsers.
func ask[Q, A any](ctx context.Context, s *Server, call control.Endpoint[Q, A], q Q) (a A, err error) {
	if err := allowed(call.Call); err != nil {
		return a, err
	}
	return call.Get(ctx, s.cfg.Client, q)
}

func tell[Q, A any](ctx context.Context, s *Server, call control.Endpoint[Q, A], q Q) error {
	if err := allowed(call.Call); err != nil {
		return err
	}
	return call.Ask(ctx, s.cfg.Client, q, nil)
}

// follow makes a call that answers the progress of a purchase, until seen has what it waits for. A stream
// that ends sooner is an error.
func follow[Q any](ctx context.Context, s *Server, call control.Endpoint[Q, control.ProgressLine], q Q, seen func(control.ProgressLine) bool) error {
	if err := allowed(call.Call); err != nil {
		return err
	}
	enough := errors.New("seen")
	err := call.Follow(ctx, s.cfg.Client, q, func(l control.ProgressLine) error {
		switch {
		case l.Error != "":
			return errors.New(l.Error)
		case seen(l):
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return nil
	}
	return cmp.Or(err, exit.Fail(exit.Failed, "see 'Purchases' before you try again", "the agent stopped before it had answered"))
}
