package web_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/web"
)

// Whatever is wrong with a request, no call is made for it.
func TestARequestThatIsNotFromThesePagesIsRefused(t *testing.T) {
	form := url.Values{"id": {"p1"}, "yes": {"1"}}
	for name, c := range map[string]struct {
		change func(r *http.Request)
		want   int
	}{
		"a foreign host":                  {func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"a host that only begins so":      {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, http.StatusMisdirectedRequest},
		"no host":                         {func(r *http.Request) { r.Host = "" }, http.StatusMisdirectedRequest},
		"the origin null":                 {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"another origin":                  {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"another port of this machine":    {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"another site, without an origin": {func(r *http.Request) { r.Header.Del("Origin"); r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"plain text":                      {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"no type":                         {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType},
		"JSON":                            {func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }, http.StatusUnsupportedMediaType},
		"files, for another form":         {func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }, http.StatusUnsupportedMediaType},
		"no cookie":                       {func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusSeeOther},
		"a made-up cookie":                {func(r *http.Request) { setCookie(r, strings.Repeat("0", 32)) }, http.StatusSeeOther},
		"an empty cookie":                 {func(r *http.Request) { setCookie(r, "") }, http.StatusSeeOther},
		"a path with dots":                {func(r *http.Request) { r.URL.Path = "/x/../approve" }, http.StatusBadRequest},
		"two slashes":                     {func(r *http.Request) { r.URL.Path = "//approve" }, http.StatusBadRequest},
		"a method of its own":             {func(r *http.Request) { r.Method = "PROPFIND" }, http.StatusMethodNotAllowed},
	} {
		s := serve(t, control.User, plainText).login()
		r := s.request("POST", "/approve", form)
		c.change(r)
		w := httptest.NewRecorder()
		s.pages.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
		if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: allowed are %q", name, w.Header().Get("Allow"))
		}
		if n := s.agent.asked("/v1/approve"); n != 0 {
			t.Errorf("%s: the agent was asked", name)
		}
	}
	s := serve(t, control.User, plainText).login()
	if r := s.do(s.request("POST", "/approve", form)); r.StatusCode != http.StatusSeeOther || s.agent.asked("/v1/approve") != 1 {
		t.Errorf("the page's own form: %d, asked %d times", r.StatusCode, s.agent.asked("/v1/approve"))
	}
}

// setCookie changes the value of the one cookie.
func setCookie(r *http.Request, value string) {
	c := r.Cookies()[0]
	c.Value = value
	r.Header.Set("Cookie", c.String())
}

func TestALargeBodyIsRefused(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	big := url.Values{"id": {strings.Repeat("x", 10<<20)}}
	for name, length := range map[string]int64{"with its length": int64(len(big.Encode())), "without it": -1} {
		r := s.request("POST", "/approve", big)
		r.ContentLength = length
		w := httptest.NewRecorder()
		if s.pages.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge || s.agent.asked("/v1/approve") != 0 {
			t.Errorf("10 MB %s: %d", name, w.Code)
		}
	}
}

func TestFilesThatAreTooLargeAreNotRead(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	r := s.withFile(map[string]string{"id": "p0123456789abcdef", "document": documentOf(time.Now()), "command": "sort data.txt"}, "1\n")
	r.ContentLength = 2<<30 + 1
	w := httptest.NewRecorder()
	if s.pages.ServeHTTP(w, r); w.Code != http.StatusRequestEntityTooLarge || s.agent.asked("/v1/run/upload") != 0 {
		t.Errorf("%d", w.Code)
	}
}

func TestABrokenFormIsNoLargeOne(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	r := s.request("POST", "/approve", nil)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("a=%zz")), 5
	w := httptest.NewRecorder()
	if s.pages.ServeHTTP(w, r); w.Code != http.StatusBadRequest || s.agent.asked("/v1/approve") != 0 {
		t.Errorf("%d", w.Code)
	}
}

func TestALinkLogsInOnceWithinAMinute(t *testing.T) {
	now := time.Now()
	s := serve(t, control.User, plainText, func(c *web.Config) { c.Now = func() time.Time { return now } })
	enter := func(token string) int {
		return s.do(s.request("POST", "/login", url.Values{"token": {token}})).StatusCode
	}
	token := s.token()
	r := s.do(s.request("POST", "/login", url.Values{"token": {token}}))
	if c := r.Cookies(); r.StatusCode != http.StatusSeeOther || len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].MaxAge != 0 {
		t.Fatalf("login: %d, %v", r.StatusCode, c)
	}
	if got := enter(token); got != http.StatusForbidden {
		t.Errorf("used again: %d", got)
	}
	old := s.token()
	now = now.Add(61 * time.Second)
	if got := enter(old); got != http.StatusForbidden {
		t.Errorf("after 61 s: %d", got)
	}
	for _, bad := range []string{"", "x", strings.Repeat("f", 32), strings.Repeat("f", 100_000)} {
		if got := enter(bad); got != http.StatusForbidden {
			t.Errorf("token %.40q: %d", bad, got)
		}
	}
	if got := enter(s.pages.Link("http://127.0.0.1:1")); got != http.StatusSeeOther {
		t.Errorf("the whole link, pasted: %d", got)
	}
	again := s.do(s.request("POST", "/login", url.Values{"token": {token}}))
	if body, _ := io.ReadAll(again.Body); !strings.Contains(string(body), "ramp user web --dir x") {
		t.Errorf("the refusal does not name the command: %s", body)
	}
}

func TestASessionEnds(t *testing.T) {
	now := time.Now()
	s := serve(t, control.User, plainText, func(c *web.Config) { c.Now = func() time.Time { return now } }).login()
	if got := s.do(s.request("GET", "/", nil)).StatusCode; got != http.StatusOK {
		t.Fatalf("logged in: %d", got)
	}
	now = now.Add(13 * time.Hour)
	if got := s.do(s.request("GET", "/", nil)).StatusCode; got != http.StatusSeeOther {
		t.Errorf("idle for 13 h: %d", got)
	}
	s.login()
	s.do(s.request("POST", "/login", url.Values{"out": {"1"}}))
	if got := s.do(s.request("GET", "/", nil)).StatusCode; got != http.StatusSeeOther {
		t.Errorf("logged out: %d", got)
	}
}

// The cookie of one agent is worth nothing at another, even of the same name.
func TestAnotherAgentsCookieIsRefused(t *testing.T) {
	one := serve(t, control.User, plainText).login()
	for name, other := range map[string]*site{
		"the same agent, another process": serve(t, control.User, plainText),
		"another agent":                   serve(t, control.User, plainText, func(c *web.Config) { c.Agent = "bob@x" }),
	} {
		other.cookie = one.cookie
		if got := other.do(other.request("GET", "/", nil)).StatusCode; got != http.StatusSeeOther {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// A thousand streams: the first are served, the others refused, and pages are still answered.
func TestIdleStreamsAreBounded(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	refused := 0
	for range 1000 {
		r := s.do(s.request("GET", "/live", nil))
		if r.StatusCode == http.StatusServiceUnavailable {
			refused++
			break // so will the others be
		}
	}
	if refused == 0 {
		t.Error("a thousand streams are open")
	}
	if got := s.do(s.request("GET", "/", nil)).StatusCode; got != http.StatusOK {
		t.Errorf("a page beside them: %d", got)
	}
}

// Calls that are not open to browsers have no path, and neither has the control socket.
func TestCallsOffTheListDoNotExist(t *testing.T) {
	for _, kind := range []control.Kind{control.User, control.Resource, control.Bank} {
		s := serve(t, kind, plainText).login()
		for _, c := range control.Table() {
			for _, method := range []string{"GET", "POST"} {
				if got := s.do(s.request(method, c.Path, nil)).StatusCode; got != http.StatusNotFound {
					t.Errorf("%s %s: %d", method, c.Path, got)
				}
			}
		}
		for _, c := range control.Table() {
			if !c.Browser && s.agent.asked(c.Path) > 0 {
				t.Errorf("%s was asked", c.Path)
			}
		}
	}
}

// Behind a proxy, all is below the prefix, and the proxy's own origin is the right one.
func TestAProxyHasAnOriginAndAPrefix(t *testing.T) {
	s := serve(t, control.User, plainText, func(c *web.Config) { c.Origin, c.Prefix = "https://hpc.example.org", "/ramp/ann" })
	request := func(method, path string, form url.Values, cookie *http.Cookie) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Host = "hpc.example.org"
		r.Header.Set("Origin", "https://hpc.example.org")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if cookie != nil {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		s.pages.ServeHTTP(w, r)
		return w
	}
	w := request("POST", "/ramp/ann/login", url.Values{"token": {s.token()}}, nil)
	c := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(c) != 1 || c[0].Path != "/ramp/ann/" || !c[0].Secure {
		t.Fatalf("login: %d, %v", w.Code, c)
	}
	if w := request("GET", "/ramp/ann/", nil, c[0]); w.Code != http.StatusOK || strings.Contains(w.Body.String(), `href="/`) && !strings.Contains(w.Body.String(), `href="/ramp/ann/compose"`) {
		t.Errorf("the first page: %d", w.Code)
	}
	if w := request("GET", "/ramp/ann", nil, c[0]); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/ramp/ann/" {
		t.Errorf("the prefix without its slash: %d, %s", w.Code, w.Header().Get("Location"))
	}
	if w := request("GET", "/compose", nil, c[0]); w.Code != http.StatusNotFound {
		t.Errorf("outside of the prefix: %d", w.Code)
	}
	if w := request("GET", "/ramp/annabel", nil, c[0]); w.Code != http.StatusNotFound {
		t.Errorf("another prefix: %d", w.Code)
	}
}

// heard is what the next connection says first.
func heard(t *testing.T, l net.Listener) (string, error) {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 10)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// The kernel knows whose connection it is; another account's is closed unread.
func TestOnlyThisAccountReachesTheLoopbackPort(t *testing.T) {
	l, err := web.ListenLoopback(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("mine")); err != nil {
		t.Fatal(err)
	}
	if said, err := heard(t, l); err != nil || said != "mine" {
		t.Errorf("read %q, %v", said, err)
	}
	if os.Getuid() == 0 { // only root has another account
		_, port, _ := net.SplitHostPort(l.Addr().String())
		other := exec.Command("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port+"; echo theirs >&3; read -u 3 -t 60")
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		if said, err := heard(t, l); err != io.EOF || said != "" {
			t.Errorf("of another account: %q, %v", said, err)
		}
		_ = other.Wait()
	}
	closed := "   1: 0100007F:C350 0100007F:1F90 04 00000000:00000000 00:00000000 00000000     0        0 0 1\n"
	if uid, ok := web.OwnerIn(closed, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 0xC350}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 0x1F90}); ok {
		t.Errorf("an end that is closed belongs to %d", uid)
	}
	if n := web.AskOwners(100); n != 2 {
		t.Errorf("101 connections took %d readings of the kernel's table", n)
	}
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n" +
		"   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n" +
		"   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  4711        0 1 1\n"
	at := func(port int) *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	if uid, ok := web.OwnerIn(table, at(0xC350), at(0x1F90)); !ok || uid != 4711 {
		t.Errorf("the client's end belongs to %d, %t", uid, ok)
	}
	if _, ok := web.OwnerIn(table, at(0xC351), at(0x1F90)); ok {
		t.Error("a connection that is not there has an owner")
	}
}
