package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/user"
	"ramp/agents/web"
	"ramp/protocol"
	"ramp/protocol/message"
)

// pagesOf are the pages of each kind of agent.
var pagesOf = map[control.Kind][]string{
	control.User:     {"/", "/purchase/p1", "/purchase/p1/trace", "/compose", "/compose?from=p1", "/runs", "/run/p1", "/sweeps", "/sweep/s1", "/jobs", "/job/j1", "/money", "/sites"},
	control.Resource: {"/", "/calendar", "/reservations", "/decisions", "/check", "/queue", "/money", "/drain"},
	control.Bank:     {"/", "/audit", "/accounts", "/statement?account=ann", "/entries", "/turnover", "/disputes", "/invitations", "/order"},
}

// Whatever stands in any field is shown as text, cut if it is long, with control and
// direction characters made visible.
func TestWhatOthersWroteIsText(t *testing.T) {
	for name, text := range map[string]string{
		"a script":                   `"><script>alert(1)</script>`,
		"an attribute":               `x" onmouseover="alert(1)`,
		"a character of direction":   "abc\u202edcba\u2066",
		"control characters":         "a\x1b[31mb\x00c\u0085",
		"ten kilobytes":              strings.Repeat("long ", 2000),
		"ten kilobytes, in one word": strings.Repeat("w", 10_000),
		"a template":                 "{{.Root}}",
	} {
		for kind, paths := range pagesOf {
			s := serve(t, kind, text).login()
			for _, p := range paths {
				r := s.do(s.request("GET", p, nil))
				b, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != http.StatusOK {
					t.Fatalf("%s on %s: %d, %v: %s", name, p, r.StatusCode, err, b)
				}
				body := string(b)
				shown := regexp.MustCompile(`(?s)<textarea.*?</textarea>|<[^>]*>`).ReplaceAllString(body, "") // a form sends its fields as they are
				switch {
				case strings.Contains(body, "<script>") || strings.Contains(body, `onmouseover="`):
					t.Errorf("%s on %s is not escaped", name, p)
				case strings.ContainsAny(shown, "\u202e\u2066\x1b\x00\u0085"):
					t.Errorf("%s on %s is not visible", name, p)
				case strings.Contains(shown, strings.Repeat("w", 1000)) && !strings.Contains(p, "trace"):
					t.Errorf("%s on %s is not cut", name, p)
				}
			}
		}
	}
}

func TestAPageSaysWhatTheBankWaitsFor(t *testing.T) {
	s := serve(t, control.User, "it is away").login() // with that in every field
	for path, want := range map[string]string{"/": "the bank has not decided yet: it is away", "/purchase/p": "The bank has not decided yet", "/run/p": `href="/job/`} {
		b, err := io.ReadAll(s.do(s.request("GET", path, nil)).Body)
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s does not say %q, %v:\n%s", path, want, err, b)
		}
	}
}

// A page has the reason of the commands, whatever became of the purchase.
func TestAPageSaysWhyAPurchaseStandsAsItDoes(t *testing.T) {
	for want, p := range map[string]message.Purchase{
		"site1 refused":                    {State: user.StateSettled, Settled: true, Why: "site1 refused"},
		"The agent stopped before it bid.": {State: user.StateInterrupted, Why: "the agent stopped before it bid"},
	} {
		mux := http.NewServeMux()
		control.Purchase.Answer(mux, func(context.Context, control.IDCall) (message.Purchase, error) { return p, nil })
		control.Rounds.Answer(mux, func(context.Context, control.IDCall) ([]control.RoundView, error) { return nil, nil })
		s := serve(t, control.User, plainText, func(c *web.Config) { c.Client = control.Local(mux) }).login()
		if b, _ := io.ReadAll(s.do(s.request("GET", "/purchase/p1", nil)).Body); !strings.Contains(string(b), want) {
			t.Errorf("the page of a purchase that is %s does not say %q:\n%s", p.State, want, b)
		}
	}
}

// Balances in accounts have income that no entry has brought yet, so they do not sum to zero.
func TestBooksWithUnpaidIncomeBalance(t *testing.T) {
	fake := newFake(t, plainText)
	for sum, want := range map[protocol.Credits]bool{0: false, 1: true} {
		mux := http.NewServeMux()
		control.Accounts.Answer(mux, func(context.Context, control.None) ([]control.AccountView, error) {
			return []control.AccountView{{Lines: []control.LineView{{Currency: "GPU", Balance: 10_000, Held: 5_000_000}}}}, nil
		})
		control.Policies.Answer(mux, func(context.Context, control.None) (control.PoliciesView, error) {
			return control.PoliciesView{Sums: map[string]protocol.Credits{"GPU": sum}}, nil
		})
		control.BankProof.Answer(mux, func(context.Context, control.ProofCall) (a control.ProofAnswer, err error) {
			fake.mend(&a)
			return a, nil
		})
		s := serve(t, control.Bank, plainText, func(c *web.Config) { c.Client = control.Local(mux) }).login()
		b, _ := io.ReadAll(s.do(s.request("GET", "/", nil)).Body)
		if got := strings.Contains(string(b), "the books do not balance"); got != want || !strings.Contains(string(b), "5.00 GPU") {
			t.Errorf("a sum of %s: alarm %v, want %v:\n%s", sum, got, want, b)
		}
	}
}

func TestTextsAreMadeVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                  "plain",
		"Grüße, 世界":              "Grüße, 世界",
		"a\u202eb":               `a\u202eb`,
		"a\x00\n\x1b":            `a\u0000\u000a\u001b`,
		"\xff":                   `\ufffd`,
		strings.Repeat("é", 600): strings.Repeat("é", 500) + "… (200 more bytes)",
	} {
		if got := web.Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// A first visit costs at most 45 kB, as browsers fetch it, in at most six requests: the page,
// its style, its script, the stream, its first news, and an icon that is none.
func TestAFirstVisitIsSmall(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	get := func(path string) []byte {
		r := s.request("GET", path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		answer := s.do(r)
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
		}
		return b
	}
	page := get("/")
	z, err := gzip.NewReader(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	total := len(page)
	links := regexp.MustCompile(`(?:<link rel="stylesheet" href|<script[^>]*src|<img[^>]*src)="([^"]+)"`).FindAllStringSubmatch(string(plain), -1)
	for _, l := range links {
		total += len(get(l[1]))
	}
	if total > 45_000 || 1+len(links)+3 > 6 {
		t.Errorf("%d bytes in %d requests; allowed are 45,000 in 6", total, 1+len(links)+3)
	}
	if strings.Contains(string(plain), "style=") || strings.Contains(string(plain), "<style") || regexp.MustCompile(`<script[^>]*>[^<]`).Match(plain) {
		t.Error("the page has a style or a script of its own, which its policy forbids")
	}
}

// An agent that is not there has a page that says so.
func TestAnAgentThatIsAwayHasAPage(t *testing.T) {
	s := serve(t, control.User, plainText, func(c *web.Config) { c.Client = control.At(t.TempDir()) }).login()
	for _, p := range pagesOf[control.User] {
		r := s.do(s.request("GET", p, nil))
		b, _ := io.ReadAll(r.Body)
		if p == "/compose" { // it asks nothing
			continue
		}
		if r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(b), "daemon does not run") || !strings.Contains(string(b), "ramp user serve") {
			t.Errorf("%s: %d: %s", p, r.StatusCode, b)
		}
	}
	b, _ := io.ReadAll(s.do(s.request("POST", "/approve", url.Values{"id": {"p1"}, "yes": {"1"}})).Body)
	if !strings.Contains(string(b), "Reload this page when it runs") || strings.Contains(string(b), "goes on by itself") {
		t.Errorf("a form: %s", b)
	}
}

// A form that is sent twice is one order: it carries the key, or the ID, by which the agent
// knows it.
func TestAFormSentTwiceIsOneOrder(t *testing.T) {
	bank := serve(t, control.Bank, plainText).login()
	r := bank.do(bank.request("POST", "/order", url.Values{"what": {"credit"}, "to": {"ann"}, "amount": {"12.345678"}, "currency": {"CPU"}}))
	b, _ := io.ReadAll(r.Body)
	form := fieldsOf(string(b))
	if !strings.Contains(string(b), "Credit ann with 12.345678 CPU?") || bank.agent.asked("/v1/credit") != 0 {
		t.Fatalf("the second step: %s", b)
	}
	for range 2 {
		bank.do(bank.request("POST", "/credit", form))
	}
	if q := bank.agent.calls["/v1/credit"]; len(q) != 2 || q[0] != q[1] || !strings.Contains(q[0], `"key":"web.`) {
		t.Errorf("credit was ordered by %q", q)
	}
	user := serve(t, control.User, plainText).login()
	r = user.do(user.request("GET", "/compose?cores=4&wall=1h&within=12h&max-price=10", nil))
	b, _ = io.ReadAll(r.Body)
	form = fieldsOf(string(b))
	for range 2 {
		if r := user.do(user.request("POST", "/buy", form)); r.StatusCode != http.StatusSeeOther {
			b, _ := io.ReadAll(r.Body)
			t.Fatalf("buy: %d: %s", r.StatusCode, b)
		}
	}
	if q := user.agent.calls["/v1/buy"]; len(q) != 2 || !strings.Contains(q[0], `"id":"`+form.Get("id")+`"`) || !strings.Contains(q[1], `"id":"`+form.Get("id")+`"`) || !strings.Contains(q[0], `"confirm":true`) || !strings.Contains(q[0], `"named":true`) || !strings.Contains(q[1], `"moving":true`) {
		t.Errorf("bought by %q", q)
	}
}

// A stream that ends before the purchase is there is an error, and leads to no page of it.
func TestAnOrderThatIsLostIsAnError(t *testing.T) {
	form := url.Values{"id": {"p0123456789abcdef"}, "document": {documentOf(time.Now())}}
	for want, lines := range map[string][]control.ProgressLine{
		"It cannot write its journal.":             {{Event: "lost", Error: "it cannot write its journal"}},
		"The agent stopped before it had answered": {},
	} {
		mux := http.NewServeMux()
		progress := func(send func(control.ProgressLine) error) error {
			for _, l := range lines {
				if err := send(l); err != nil {
					return err
				}
			}
			return nil
		}
		control.Buy.Stream(mux, func(_ context.Context, _ control.BuyCall, send func(control.ProgressLine) error) error {
			return progress(send)
		})
		control.Cancel.Stream(mux, func(_ context.Context, _ control.IDCall, send func(control.ProgressLine) error) error {
			return progress(send)
		})
		s := serve(t, control.User, plainText, func(c *web.Config) { c.Client = control.Local(mux) }).login()
		for _, path := range []string{"/buy", "/quote", "/cancel"} {
			r := s.do(s.request("POST", path, form))
			if b, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(b), want) {
				t.Errorf("%s: %d, %s; want %q", path, r.StatusCode, b, want)
			}
		}
	}
}

// Who presses "Buy" twice sees the purchase.
func TestAnApprovalSentTwiceShowsThePurchase(t *testing.T) {
	for state, want := range map[string]int{user.StateVoting: http.StatusSeeOther, user.StateSettled: http.StatusSeeOther, user.StateBidding: http.StatusUnprocessableEntity, user.StateFailed: http.StatusUnprocessableEntity} {
		mux := http.NewServeMux()
		control.Approve.Answer(mux, func(context.Context, control.IDCall) (struct{}, error) {
			return struct{}{}, errors.New("it awaits no approval")
		})
		control.Purchase.Answer(mux, func(context.Context, control.IDCall) (message.Purchase, error) {
			return message.Purchase{State: state, Settled: state == user.StateSettled}, nil
		})
		s := serve(t, control.User, plainText, func(c *web.Config) { c.Client = control.Local(mux) }).login()
		if r := s.do(s.request("POST", "/approve", url.Values{"id": {"p1"}, "yes": {"1"}})); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", state, r.StatusCode, want)
		}
	}
}

// Without scripts, the button for a quote sends the fields as only its own address takes them.
func TestAQuoteNeedsNoScripts(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	b, _ := io.ReadAll(s.do(s.request("GET", "/compose", nil)).Body)
	if !regexp.MustCompile(`formaction="/quote" formenctype="application/x-www-form-urlencoded"`).Match(b) {
		t.Errorf("the button sends files: %s", b)
	}
}

// fieldsOf are the fields of the first form of a page in its main part.
func fieldsOf(page string) url.Values {
	form := url.Values{}
	_, page, _ = strings.Cut(page, `<div id="live"`)
	_, page, _ = strings.Cut(page, "<form")
	page, _, _ = strings.Cut(page, "</form>")
	for _, m := range regexp.MustCompile(`<input[^>]*name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		form.Set(m[1], m[2])
	}
	return form
}

const misspelt = `<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ" xmlns:ramp="urn:ramp:rfql:2"
 ramp:optimise="time"><Request><EndDate>2199-11-29</EndDate><EndTime>12:41:30Z</EndTime><WallTime>60</WallTime><Cores><TotalCores>1</TotalCores></Cores></Request></RequestForQuotation>`

// Faults are told in the words of the page, and what is ignored.
func TestFaultsAreShownWhileTyping(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	for name, c := range map[string]struct {
		form url.Values
		want string
	}{
		"nothing yet":      {url.Values{}, "Needed: cores"},
		"no wall time":     {url.Values{"cores": {"4"}, "within": {"1h"}}, "Wall time"},
		"only the cores":   {url.Values{"cores": {"1"}}, "Missing: Wall time, Must end within."},
		"an end too soon":  {url.Values{"cores": {"1"}, "wall": {"1h"}, "within": {"1h"}, "not-before": {"+3h"}}, "Must end within: found an end at"},
		"two of a kind":    {url.Values{"cores": {"4"}, "nodes": {"4x16"}, "wall": {"1h"}, "within": {"2h"}}, "Cores and Nodes: give one of them."},
		"no number":        {url.Values{"cores": {"many"}}, "Cores: "},
		"does not fit":     {url.Values{"cores": {"4"}, "wall": {"2h"}, "within": {"1h"}}, "does not fit"},
		"a negative cost":  {url.Values{"cores": {"4"}, "wall": {"1h"}, "within": {"2h"}, "max-cost": {"-1"}}, "Highest total"},
		"a cost in spaces": {url.Values{"cores": {"4"}, "wall": {"1h"}, "within": {"12h"}, "max-price": {"2"}, "max-cost": {" 9 "}}, "at most 8.00 credits"},
		"good":             {url.Values{"cores": {"4"}, "wall": {"1h"}, "within": {"12h"}, "max-price": {"2"}}, "4 cores for 1 h 00 min, at most 8.00 credits"},
		"a bad document":   {url.Values{"document": {"<rfq"}}, "Document: "},
		"a misspelt term":  {url.Values{"document": {misspelt}}, "RequestForQuotation: found attribute optimise of "},
	} {
		r := s.request("POST", "/compose/check", c.form)
		r.Header.Set("HX-Request", "true")
		b, _ := io.ReadAll(s.do(r).Body)
		if !strings.Contains(string(b), c.want) || strings.Contains(string(b), "--") || strings.Contains(string(b), "<html") {
			t.Errorf("%s: %s, want %q", name, b, c.want)
		}
	}
}

// A relaxation changes the request and asks again under another ID.
func TestARelaxationAsksAgain(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	r := s.do(s.request("POST", "/relax", url.Values{"id": {"p1"}, "which": {"1"}, "next": {"p0123456789abcdef"}}))
	q := s.agent.calls["/v1/buy"]
	if r.StatusCode != http.StatusSeeOther || len(q) != 1 || !strings.Contains(q[0], `"id":"p0123456789abcdef"`) || !strings.Contains(q[0], `"confirm":true`) {
		b, _ := io.ReadAll(r.Body)
		t.Errorf("%d, bought by %q: %s", r.StatusCode, q, b)
	}
	for _, which := range []string{"2", "-1", "x"} {
		if r := s.do(s.request("POST", "/relax", url.Values{"id": {"p1"}, "which": {which}, "next": {"p1"}})); r.StatusCode != http.StatusBadRequest {
			t.Errorf("relaxation %s: %d", which, r.StatusCode)
		}
	}
}

// A number in an address is refused in words of the page too, and no hours are the usual ones.
func TestNumbersInAddresses(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	for _, path := range []string{"/run/p1/x/output", "/run/p1/x/file?path=a", "/run/p1/x/files.zip"} {
		r := s.do(s.request("GET", path, nil))
		if b, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), "Unit &#34;x&#34;: want a whole number") || strings.Contains(strings.ToLower(string(b)), "strconv") {
			t.Errorf("%s: %d: %s", path, r.StatusCode, b)
		}
	}
	s = serve(t, control.Resource, plainText).login()
	if b, _ := io.ReadAll(s.do(s.request("GET", "/calendar?hours=0", nil)).Body); !strings.Contains(string(b), "Cores over the next 24 hours") {
		t.Errorf("no hours: %s", b)
	}
}

// A browser that refuses compression gets none.
func TestAPageIsCompressedOnlyIfThatIsTaken(t *testing.T) {
	s := serve(t, control.User, plainText).login()
	for takes, want := range map[string]string{"br, gzip": "gzip", "gzip; q=0": "", "identity": ""} {
		r := s.request("GET", "/compose", nil)
		r.Header.Set("Accept-Encoding", takes)
		if got := s.do(r).Header.Get("Content-Encoding"); got != want {
			t.Errorf("%s: %q, want %q", takes, got, want)
		}
	}
}

// An address that names no entry is refused in words of the page.
func TestAStatementBeforeNoEntryIsRefused(t *testing.T) {
	s := serve(t, control.Bank, plainText).login()
	b, _ := io.ReadAll(s.do(s.request("GET", "/statement?account=ann&before=x", nil)).Body)
	if !strings.Contains(string(b), "Before &#34;x&#34;: want a whole number") || strings.Contains(strings.ToLower(string(b)), "strconv") {
		t.Errorf("%s", b)
	}
}
