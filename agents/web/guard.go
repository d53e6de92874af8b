package web

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"ramp/agents/control"
	"ramp/agents/exit"
)

// Bounds of the body of a request. A request for quotation is much smaller than maxForm; only
// the form that orders a program may bring files.
const (
	maxForm   = 256 << 10
	maxUpload = 2 << 30
)

// policy allows what the pages need and nothing else: no inline script or style, no
// other site. The style sheet has its icons as data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send forms with the origin null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

type fault struct {
	status int
	what   string // what is wrong
	help   string // what to do
}

// guard checks a request before anything else does.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) *fault {
	switch {
	case !s.ownHost(r.Host):
		return &fault{http.StatusMisdirectedRequest, fmt.Sprintf("These pages do not answer for the host %.80q.", r.Host),
			"Use the link that '" + s.cfg.Command + "' prints. Behind a proxy, set web.origin in the agent's config.yaml."}
	case r.URL.Path != path.Clean(r.URL.Path) && r.URL.Path != s.cfg.Prefix+"/" || strings.ContainsAny(r.URL.Path, "\\\x00"):
		return &fault{http.StatusBadRequest, "The address is not one of these pages.", "Go to the first page."}
	case s.cfg.Prefix != "" && !strings.HasPrefix(r.URL.Path+"/", s.cfg.Prefix+"/"):
		return &fault{http.StatusNotFound, "The pages are below " + s.cfg.Prefix + "/.", "That is web.prefix in the agent's config.yaml; the proxy must pass the path as it is."}
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		return &fault{http.StatusMethodNotAllowed, "The pages answer GET and POST only.", "Go to the first page."}
	case !s.ownOrigin(r):
		return &fault{http.StatusForbidden, "The request comes from a page of another site, so nothing was done.", "If you did not mean to do anything here, close that page."}
	case r.Method == http.MethodPost:
		return s.readForm(w, r)
	}
	return nil
}

func (s *Server) readForm(w http.ResponseWriter, r *http.Request) *fault {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return &fault{http.StatusForbidden, "The request comes from a page of another site, so nothing was done.", "If you did not mean to do anything here, close that page."}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" && r.URL.Path == s.cfg.Prefix+buyPath {
		if r.ContentLength > maxUpload {
			return &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("The files have more than %d GiB in total.", maxUpload>>30), "'ramp run' sends larger ones."}
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxUpload) // it is read piece by piece, after the session is checked
		return nil
	}
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return &fault{http.StatusUnsupportedMediaType, "The pages accept forms only.", "Scripts use the control socket: docs/CONTROL.md lists its calls."}
	}
	tooLong := &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("The form has more than %d bytes.", maxForm), "Use the commands for such a request."}
	if r.ContentLength > maxForm {
		return tooLong
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	var long *http.MaxBytesError
	switch err := r.ParseForm(); {
	case errors.As(err, &long):
		return tooLong
	case err != nil:
		return &fault{http.StatusBadRequest, "The form cannot be read.", "Send it once more from its page."}
	}
	return nil
}

// ownHost reports whether a host is this machine, or the proxy.
func (s *Server) ownHost(host string) bool {
	return LoopbackHost(host) || s.cfg.Origin != "" && strings.EqualFold(host, hostOf(s.cfg.Origin))
}

// ownOrigin reports whether a request comes from these pages or from no page.
func (s *Server) ownOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || origin == s.cfg.Origin {
		return true
	}
	return LoopbackHost(r.Host) && origin == "http://"+r.Host
}

func hostOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Host
}

// LoopbackHost reports whether the host of a request is this machine's loopback. A web page
// that has its own name resolve to 127.0.0.1 could otherwise read the answers.
func LoopbackHost(host string) bool {
	name := strings.ToLower(strings.TrimSuffix((&url.URL{Host: host}).Hostname(), "."))
	at, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && at.IsLoopback()
}

// OnlyLoopback refuses requests for another host than this machine's loopback.
func OnlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !LoopbackHost(r.Host) {
			http.Error(w, fmt.Sprintf("host %.80q: the monitor answers only for localhost and loopback addresses, such as 127.0.0.1", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowed refuses calls that are not open to browsers.
func allowed(c *control.Call) error {
	if !c.Browser {
		return exit.Fail(exit.Refused, "use the command line", "%s is not available to browsers", c.Path)
	}
	return nil
}
