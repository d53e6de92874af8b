package web_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"ramp/agents/control"
)

// kinds are the agents whose pages are walked, and their names in the market.
var kinds = [][2]string{{"user", "user"}, {"resource", "site1"}, {"bank", "bank"}}

// walker reads pages as a browser without scripts does.
type walker struct {
	t      testing.TB
	base   string
	client *http.Client
}

func (m *market) walker(kind, name string) walker {
	m.t.Helper()
	base, link := m.pages(kind, name)
	jar, err := cookiejar.New(nil)
	m.must(err)
	w := walker{m.t, base, &http.Client{Jar: jar}}
	r, err := w.client.PostForm(base+"/login", url.Values{"token": {link}})
	m.must(err)
	m.must(r.Body.Close())
	return w
}

var (
	links     = regexp.MustCompile(`<a href="(/[^"]*)"`)
	forms     = regexp.MustCompile(`(?s)<form ([^>]*)>(.*?)</form>`)
	scripted  = regexp.MustCompile(`<(\w+)[^>]* hx-(?:get|post)="[^"]*"[^>]*>`)
	longNames = regexp.MustCompile(`[0-9a-z]{16,}`)
)

// walk finds every page that links lead to from the first one: of those that differ only in an
// ID or in what they ask, the first few.
func (w walker) walk() (paths []string) {
	w.t.Helper()
	seen := map[string]int{}
	for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		shape, _, _ := strings.Cut(longNames.ReplaceAllString(p, "*"), "=")
		if seen[shape]++; slices.Contains(paths, p) || seen[shape] > 1 && shape != "/purchase/*" || seen[shape] > 3 {
			continue
		}
		page, ok := w.read(p)
		if !ok {
			continue
		}
		paths = append(paths, p)
		for _, l := range links.FindAllStringSubmatch(page, -1) {
			queue = append(queue, html.UnescapeString(l[1]))
		}
	}
	return paths
}

// read reads a page, and checks that nothing on it needs a script: each form has an address and
// a button, and only forms and what is beside them ask by a script too. ok: it is a page.
func (w walker) read(path string) (text string, ok bool) {
	w.t.Helper()
	r, err := w.client.Get(w.base + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		w.t.Errorf("%s: %d, %v", path, r.StatusCode, err)
		return "", false
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return "", false // a file
	}
	text = string(b)
	for _, f := range forms.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(f[1], `action="/`) || !strings.Contains(f[2], "<button") {
			w.t.Errorf("%s: the form <%s> needs a script", path, f[1])
		}
	}
	for _, e := range scripted.FindAllStringSubmatch(text, -1) {
		switch {
		case e[1] == "form" && strings.Contains(e[0], `action="/`), e[1] == "button" && strings.Contains(e[0], `formaction="/`):
		case strings.Contains(e[0], `id="live"`), strings.Contains(e[0], `hx-target="#faults"`): // the page itself, and what is said again when the form is sent
		default:
			w.t.Errorf("%s: %s needs a script", path, e[0])
		}
	}
	return text, true
}

// Every page of agents that have everything, such as sweeps and jobs, is read without scripts.
func TestReadingNeedsNoScript(t *testing.T) {
	for kind, want := range map[control.Kind][]string{
		control.User:     {"/purchase/plain/trace", "/sweep/plain", "/job/plain", "/run/plain"},
		control.Resource: {"/calendar?hours="},
		control.Bank:     {"/statement?account=plain"},
	} {
		s := serve(t, kind, plainText).login()
		w := walker{t, s.server.URL, &http.Client{Transport: s}}
		paths := w.walk()
		for _, p := range want {
			if !slices.ContainsFunc(paths, func(found string) bool { return strings.HasPrefix(found, p) }) {
				t.Errorf("no link leads to %s, of %q", p, paths)
			}
		}
	}
}

// RoundTrip asks with the session's cookie.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	r.AddCookie(s.cookie)
	return http.DefaultTransport.RoundTrip(r)
}

// readWithoutScripts reads every page of every agent with scripts switched off, after a login by
// hand, and sends a form.
func readWithoutScripts(t *testing.T, m *market) {
	for _, k := range kinds {
		w := m.walker(k[0], k[1])
		paths := w.walk()
		b := newBrowser(t)
		base, link := m.pages(k[0], k[1])
		_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		m.must(err)
		b.open(base + "/login")
		m.must(chromedp.Do(b.ctx, chromedp.SendKeys("input[name=token]", link+"\r")))
		b.await("the first page", "document.querySelector('nav a')")
		if n := value[int](b, "document.querySelectorAll('nav a').length"); len(paths) <= n {
			t.Errorf("%s: %d pages were found behind %d links: %q", k[0], len(paths), n, paths)
		}
		for _, p := range paths {
			b.open(base + p)
			b.await(p+" without scripts", "document.querySelector('#live h1').innerText && document.querySelectorAll('#live section').length && document.body.innerText.includes('Reload the page for news.')")
		}
		if k[0] == "user" {
			b.open(base + "/compose")
			m.must(chromedp.Do(b.ctx, chromedp.SendKeys("input[name=cores]", "4"), chromedp.SendKeys("input[name=wall]", "1h"), chromedp.SendKeys("input[name=within]", "12h"), chromedp.SendKeys("input[name=max-price]", "30\r")))
			b.await("the order", "location.pathname.startsWith('/purchase/')")
			b.await("its page", "document.querySelector('#live h1')")
		}
		t.Logf("%s: %q", k[0], paths)
	}
}
