package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"ramp/agents/control"
	"ramp/protocol"
)

// Bounds of logins. Tokens and sessions are only in memory.
const (
	tokenTime   = time.Minute
	sessionTime = 12 * time.Hour // since the last request
	maxTokens   = 16             // the oldest one goes
	maxSessions = 64             // the one that was idle longest goes
)

// sessions are the links that were given out and the browsers that are logged in.
type sessions struct {
	*sessionTable
	cookie string
	now    func() time.Time
}

type sessionTable struct {
	mu     sync.Mutex
	tokens map[[32]byte]time.Time // hash, and when it ends
	open   map[[32]byte]time.Time // hash, and when it was last used
}

func newSessions(kind control.Kind, agent protocol.AgentID, now func() time.Time) sessions {
	sum := sha256.Sum256([]byte(agent))
	return sessions{&sessionTable{tokens: map[[32]byte]time.Time{}, open: map[[32]byte]time.Time{}}, "ramp-" + kind.String() + "-" + hex.EncodeToString(sum[:6]), now}
}

// secret draws 128 random bits.
func secret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// add adds an entry, and drops the oldest one beyond the bound.
func add(list map[[32]byte]time.Time, text string, at time.Time, most int) {
	if len(list) >= most {
		var oldest [32]byte
		first := true
		for k, t := range list {
			if first || t.Before(list[oldest]) {
				oldest, first = k, false
			}
		}
		delete(list, oldest)
	}
	list[sha256.Sum256([]byte(text))] = at
}

// token makes a token that logs in once.
func (s sessions) token() string {
	t := secret()
	s.mu.Lock()
	defer s.mu.Unlock()
	add(s.tokens, t, s.now().Add(tokenTime), maxTokens)
	return t
}

// begin uses up a token and returns the value of the cookie.
func (s sessions) begin(token string) (cookie string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(token))
	until, known := s.tokens[key]
	delete(s.tokens, key)
	if !known || s.now().After(until) {
		return "", false
	}
	cookie = secret()
	add(s.open, cookie, s.now(), maxSessions)
	return cookie, true
}

func (s sessions) has(r *http.Request) bool {
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(c.Value))
	used, ok := s.open[key]
	if !ok || s.now().Sub(used) > sessionTime {
		delete(s.open, key)
		return false
	}
	s.open[key] = s.now()
	return true
}

func (s sessions) end(r *http.Request) {
	if c, err := r.Cookie(s.cookie); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, sha256.Sum256([]byte(c.Value)))
	}
}

// login asks for the token of a link. The token is behind the # of the link, which browsers
// never send, so a script moves it into the form; without scripts a person copies it.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.showLogin(w, r, http.StatusOK, nil)
		return
	}
	if r.PostForm.Has("out") {
		s.sessions.end(r)
		http.Redirect(w, r, s.path("/login"), http.StatusSeeOther)
		return
	}
	_, token, found := strings.Cut(strings.TrimSpace(r.PostForm.Get("token")), "#") // a person may paste the whole link
	if !found {
		token = strings.TrimSpace(r.PostForm.Get("token"))
	}
	cookie, ok := s.sessions.begin(token)
	if !ok {
		s.showLogin(w, r, http.StatusForbidden, &note{Kind: "bad", Text: "This link was used before, or is older than a minute. Make a new one by: " + s.cfg.Command})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.sessions.cookie, Value: cookie, Path: s.path("/"), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: strings.HasPrefix(s.cfg.Origin, "https://") && !LoopbackHost(r.Host),
	})
	http.Redirect(w, r, s.path("/login")+"?in=1", http.StatusSeeOther)
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request, status int, n *note) {
	if n == nil && s.sessions.has(r) {
		http.Redirect(w, r, s.path("/"), http.StatusSeeOther)
		return
	}
	if n == nil && r.URL.Query().Has("in") {
		n = &note{Kind: "bad", Text: "This browser did not keep the cookie that these pages need. Allow cookies for this address, and make a new link by: " + s.cfg.Command}
	}
	v := view{Title: "Log in", Bare: true, Blocks: []block{
		{Note: n},
		{Note: &note{Text: "Open the link that this command prints. It works once, for a minute:"}, Code: s.cfg.Command},
		{Form: &form{Action: "/login", ID: "login", Submit: "Log in", Fields: []field{{Name: "token", Label: "Or paste the link here", Required: true}}}},
	}}
	s.show(w, r, status, v)
}
