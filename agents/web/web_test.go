package web_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ramp/agents/control"
	"ramp/protocol/message"
)

// unixClient reaches a socket.
func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}}
}

// TestPages is a market of real daemons in a real Chromium. Its parts share the market.
func TestPages(t *testing.T) {
	m := newMarket(t)
	for _, c := range []struct {
		name string
		part func(t *testing.T, m *market)
	}{
		{"a link logs in once", linkOnce},
		{"compose, rounds, approve, receipt", buyInBrowser},
		{"an impossible request has a button that buys", relaxInBrowser},
		{"a program, its files and its output", runInBrowser},
		{"a daemon that is killed during an auction", killInBrowser},
		{"drain and resume", drainInBrowser},
		{"a credit that is clicked twice", creditTwice},
		{"a statement of 10,000 entries", longStatement},
		{"a purchase by keyboard alone", buyByKeyboard},
		{"a page whose name is rebound", rebinding},
		{"another host on every port of every daemon", foreignHosts},
		{"another user of the machine", anotherAccount},
		{"a prefix behind nginx", behindNginx},
		{"a browser without cookies", withoutCookies},
		{"a clock that is an hour off", wrongClock},
		{"reading without JavaScript", readWithoutScripts},
		{"a proxy that keeps events back", behindABufferingProxy},
		{"every page, in both colours and narrow", everyPage},
		{"answers are as docs/openapi.json says", answersValidate},
		{"a full disk", fullDisk},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.t = t
			c.part(t, m)
		})
	}
}

func linkOnce(t *testing.T, m *market) {
	b := newBrowser(t)
	base, link := m.pages("user", "user")
	b.open(link)
	b.sees("Purchases")
	b.quiet(strings.TrimPrefix(base, "http://"))
	other := newBrowser(t)
	other.open(link)
	other.sees("used before")
	other.sees("ramp user web --dir")
	if got := value[string](other, "location.hash"); got != "" {
		t.Errorf("the token stays in the address: %q", got)
	}
}

// composed fills the form of a request.
func composed(b *browser, base, name, cores, price string) {
	b.open(base + "/compose")
	b.fill("cores", cores)
	b.fill("wall", "1h")
	b.sees("Must end within")
	b.fill("within", "12h")
	b.fill("max-price", price)
	b.fill("name", name)
	b.fill("rounds", "3")
	b.sees("Asks for " + cores + " cores for 1 h 00 min")
}

func buyInBrowser(t *testing.T, m *market) {
	b := newBrowser(t)
	base := m.enter(b, "user", "user")
	composed(b, base, "first", "16", "30")
	b.press("Only a quote")
	b.sees("Sites asked")
	b.sees("The best set of offers")
	b.press("Ask the market")
	b.sees("Your decision")
	b.sees("Round 3")
	b.press("Buy for ")
	b.sees("State: settled.")
	p := m.purchases()[len(m.purchases())-1]
	if text := b.text(); !strings.Contains(text, p.Total.Cents()+" "+p.Currency) || !strings.Contains(text, p.Units[0].Price.Cents()+" CPU per core-hour") || !strings.Contains(text, string(p.Contract)) {
		t.Errorf("the page and the command disagree about %+v:\n%s", p, text)
	}
	shown := m.run("user", "show", p.ID, "--dir", "user")
	if !strings.Contains(shown, p.Total.Cents()) {
		t.Errorf("the command shows %s", shown)
	}
	m.await("the proof", func() bool {
		var f control.SignedFiles
		return control.SignedParts.Ask(context.Background(), m.client("user"), control.IDCall{ID: p.ID}, &f) == nil && len(f.Proof) > 0
	})
	value[bool](b, `(fetch(location.pathname+"/receipt.zip").then(r=>r.bytes()).then(x=>{window.archive=x.toBase64()}),true)`)
	b.await("the archive", "window.archive")
	archive := value[string](b, "window.archive")
	verifyReceipt(t, m, archive)
	b.quiet(strings.TrimPrefix(base, "http://"))
}

// verifyReceipt has openssl verify what a page sent.
func verifyReceipt(t *testing.T, m *market, archive string) {
	t.Helper()
	dir := t.TempDir()
	raw := decode64(t, archive)
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		m.must(err)
		b, err := io.ReadAll(r)
		m.must(err)
		m.must(os.WriteFile(filepath.Join(dir, f.Name), b, 0o600))
	}
	c := exec.Command("openssl", "cms", "-verify", "-inform", "DER", "-in", "receipt.p7m", "-CAfile", "ca.pem", "-purpose", "any", "-out", "receipt.json")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("openssl: %v: %s", err, out)
	}
	m.run("bank", "verify", dir)
}

func relaxInBrowser(t *testing.T, m *market) {
	b := newBrowser(t)
	base := m.enter(b, "user", "user")
	before := m.settled()
	composed(b, base, "impossible", "32", "1")
	b.press("Ask the market")
	b.await("the end", "/Your decision|State: failed/.test(document.body.innerText)")
	if strings.Contains(b.text(), "Your decision") { // the nearest set is offered; it is declined
		b.press("Do not buy")
	}
	b.sees("What would help")
	b.press("Raise the highest price")
	b.sees("Your decision")
	b.press("Buy for ")
	b.sees("State: settled.")
	if got := m.settled(); got != before+1 {
		t.Errorf("%d purchases, want %d", got, before+1)
	}
	b.quiet(strings.TrimPrefix(base, "http://"))
}

// killInBrowser has a round wait for sites that are stopped, and kills the daemon meanwhile.
func killInBrowser(t *testing.T, m *market) {
	b := newBrowser(t)
	base := m.enter(b, "user", "user")
	before := m.settled()
	composed(b, base, "killed", "8", "30")
	m.allSites(syscall.SIGSTOP) // a round waits for them
	b.press("Ask the market")
	b.sees("State: bidding.")
	m.kill("user")
	b.sees("The agent does not answer.")
	m.allSites(syscall.SIGCONT)
	m.serve("user", "user")
	m.awaitSites()
	b.await("the page to go on", "!document.body.innerText.includes('does not answer') && /State: /.test(document.body.innerText)")
	b.await("the end", "/Your decision|interrupted/.test(document.body.innerText)")
	if !strings.Contains(b.text(), "Your decision") {
		b.open(base + "/compose?from=" + strings.TrimPrefix(value[string](b, "location.pathname"), "/purchase/"))
		b.sees("Asks for 8 cores")
		b.press("Ask the market")
		b.sees("Your decision")
	}
	b.press("Buy for ")
	b.sees("State: settled.")
	if got := m.settled(); got != before+1 {
		t.Errorf("%d purchases, want %d", got, before+1)
	}
}

func drainInBrowser(t *testing.T, m *market) {
	b := newBrowser(t)
	base := m.enter(b, "resource", "site1")
	b.open(base + "/drain")
	b.fill("why", "new cooling")
	b.press("Stop selling")
	b.sees("Sales: drained.")
	b.sees("new cooling")
	var s message.ResourceStatus
	m.must(control.Status.Ask(context.Background(), m.client("site1"), control.None{}, &s))
	if s.Sales != message.SalesDrained || !strings.HasSuffix(s.Why, "new cooling") {
		t.Errorf("the site is %s: %s", s.Sales, s.Why)
	}
	b.press("Sell again")
	b.sees("Sales: open.")
	b.quiet(strings.TrimPrefix(base, "http://"))
}

func creditTwice(t *testing.T, m *market) {
	b := newBrowser(t)
	base := m.enter(b, "bank", "bank")
	var last control.OperatorEntry
	m.must(control.LastEntry.Ask(context.Background(), m.client("bank"), control.None{}, &last))
	b.open(base + "/order")
	b.fill("to", "ann")
	b.fill("amount", "12.50")
	b.press("Continue")
	b.sees("Credit ann with 12.5 CPU?")
	// Two clicks, and the same form sent by a script besides.
	value[bool](b, `(()=>{const f=document.querySelector('#live form'),q=new URLSearchParams(new FormData(f));
		Promise.all([0,1].map(()=>fetch(f.action,{method:'POST',body:q}))).then(()=>{const s=f.querySelector('button');s.click();s.click()});return true})()`)
	b.sees("Statement of ann")
	b.sees("+12.50 CPU")
	var now control.OperatorEntry
	m.must(control.LastEntry.Ask(context.Background(), m.client("bank"), control.None{}, &now))
	var entries []control.EntryView
	m.must(control.Entries.Ask(context.Background(), m.client("bank"), control.EntriesCall{From: last.Entry + 1, Limit: 100}, &entries))
	credits := 0
	for _, e := range entries {
		if e.What == "credit" {
			credits++
		}
	}
	if credits != 1 {
		t.Errorf("%d credits, want one", credits)
	}
	b.open(base + "/entries")
	b.sees("ann +12.50 CPU")
	b.quiet(strings.TrimPrefix(base, "http://"))
}

func longStatement(t *testing.T, m *market) {
	const entries = 10_000
	client := m.client("bank")
	ctx := context.Background()
	errs := make(chan error, 64)
	for w := range cap(errs) {
		go func() {
			for i := w; i < entries; i += cap(errs) {
				if err := control.Credit.Ask(ctx, client, control.CreditCall{Account: "site2", Currency: "CPU", Amount: 1_000_000, Ref: fmt.Sprint(i), Key: fmt.Sprintf("test.%d", i)}, nil); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		m.must(<-errs)
	}
	b := newBrowser(t)
	base := m.enter(b, "bank", "bank")
	b.open(base + "/accounts")
	value[bool](b, "([...document.querySelectorAll('a')].find(e=>e.innerText=='site2').click(),true)")
	b.sees("Statement of site2")
	seen := map[string]bool{}
	for range 5 {
		for _, n := range strings.Fields(value[string](b, "[...document.querySelectorAll('tbody tr td:first-child')].map(e=>e.innerText).join(' ')")) {
			if seen[n] {
				t.Fatalf("entry %s is on two pages", n)
			}
			seen[n] = true
		}
		first := value[string](b, "document.querySelector('tbody tr td').innerText")
		value[bool](b, "(document.querySelector('a[rel=next]').click(),true)")
		b.await("the next page", fmt.Sprintf("document.querySelector('tbody tr td') && document.querySelector('tbody tr td').innerText!=%q", first))
	}
	if len(seen) != 5*50 {
		t.Errorf("%d entries on five pages", len(seen))
	}
	b.quiet(strings.TrimPrefix(base, "http://"))
}

// buyByKeyboard presses keys only: Tab to what is to be filled in or pressed, and Enter.
func buyByKeyboard(t *testing.T, m *market) {
	b := newBrowser(t)
	base := m.enter(b, "user", "user")
	before := m.settled()
	b.open(base + "/compose")
	for _, f := range [][2]string{{"cores", "4"}, {"wall", "1h"}, {"within", "12h"}, {"max-price", "30"}} {
		b.tabTo(fmt.Sprintf("document.activeElement.name==%q", f[0]))
		b.keys(f[1])
	}
	b.sees("Asks for 4 cores")
	b.tabTo("document.activeElement.innerText=='Ask the market'")
	b.keys("\r")
	b.sees("Your decision")
	b.tabTo("document.activeElement.innerText.startsWith('Buy for')")
	b.keys("\r")
	b.sees("State: settled.")
	if got := m.settled(); got != before+1 {
		t.Errorf("%d purchases, want %d", got, before+1)
	}
}

// tabTo presses Tab until the focus is where it should be.
func (b *browser) tabTo(condition string) {
	b.t.Helper()
	for range 80 {
		if value[bool](b, condition) {
			return
		}
		b.keys("\t")
	}
	b.t.Fatalf("Tab does not reach %s", condition)
}

func (b *browser) keys(text string) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.KeyEvent(text)))
}

// rebinding has another site's name resolve to this machine, as an attacker's server does.
func rebinding(t *testing.T, m *market) {
	base, link := m.pages("user", "user")
	port := base[strings.LastIndex(base, ":"):]
	b := newBrowser(t, chromedp.Flag("host-resolver-rules", "MAP evil.example 127.0.0.1"))
	for _, p := range []string{"/", "/login", "/live", "/purchase/x", link[strings.Index(link, "/login"):]} {
		b.open("http://evil.example" + port + p)
		b.sees("do not answer for the host")
		if strings.Contains(b.text(), "Purchases") {
			t.Errorf("%s is answered", p)
		}
	}
}

// behindABufferingProxy has events arrive never: the page polls, and says so.
func behindABufferingProxy(t *testing.T, m *market) {
	base, link := m.pages("user", "user")
	target, err := url.Parse(base)
	m.must(err)
	forward := httputil.NewSingleHostReverseProxy(target)
	polls := make(chan string, 1000)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/live" {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		if r.Header.Get("HX-Request") != "" {
			polls <- r.URL.Path
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	b := newBrowser(t)
	b.open(proxy.URL + strings.TrimPrefix(link, base))
	b.sees("Live news do not arrive")
	select {
	case <-polls:
	case <-time.After(waitTime):
		t.Error("the page does not poll")
	}
}

// answersValidate compares what real agents answer with the schema.
func answersValidate(t *testing.T, m *market) {
	text, err := os.ReadFile("../../docs/openapi.json")
	m.must(err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	m.must(err)
	c := jsonschema.NewCompiler()
	m.must(c.AddResource("openapi.json", doc))
	n := 0
	for name, kind := range map[string]control.Kind{"user": control.User, "site2": control.Resource, "bank": control.Bank} {
		for path, answer := range m.answers(name, kind) {
			schema, err := c.Compile("openapi.json#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/post/responses/200/content/application~1json/schema")
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
			if err == nil {
				err = schema.Validate(v)
			}
			if err != nil {
				t.Errorf("%s of %s: %v", path, name, err)
			}
			n++
		}
	}
	if n < 20 {
		t.Errorf("%d answers were compared", n)
	}
}
