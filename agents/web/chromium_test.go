package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// waitTime bounds what a page is waited for.
const waitTime = 30 * time.Second

// browser is a tab of a Chromium, and what its log says.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string // console messages, errors, reports of the policy, refused requests
	hosts    []string // that were asked for anything
	requests int
}

// newBrowser starts a Chromium with a profile of its own.
func newBrowser(t *testing.T, flags ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(opts, flags...)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	b.listen()
	return b
}

func (b *browser) listen() {
	b.t.Helper()
	b.must(chromedp.Listen(b.ctx, b.note))
	_, err := chromedp.Call(b.ctx, log.Enable, cdp.Empty{})
	b.must(err)
	_, err = chromedp.Call(b.ctx, network.Enable, network.EnableParams{})
	b.must(err)
	_, err = chromedp.Call(b.ctx, audits.Enable, cdp.Empty{})
	b.must(err)
}

// note keeps what the browser reports.
func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.messages = append(b.messages, fmt.Sprintf("console %s: %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		b.messages = append(b.messages, "exception: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.messages = append(b.messages, fmt.Sprintf("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *audits.EventIssueAdded:
		if e.Issue.Details.GenericIssueDetails != nil && e.Issue.Details.GenericIssueDetails.ErrorType == "NavigationEntryMarkedSkippable" {
			return // the test clicks by a script
		}
		details, _ := json.Marshal(e.Issue.Details) // for people
		b.messages = append(b.messages, fmt.Sprintf("issue %s: %s", e.Issue.Code, details))
	case *network.EventRequestWillBeSent:
		if strings.HasPrefix(e.Request.URL, "data:") {
			return
		}
		b.requests++
		host, _, _ := strings.Cut(strings.TrimPrefix(e.Request.URL, "http://"), "/")
		b.hosts = append(b.hosts, host)
	}
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// open goes to an address, and waits for its page.
func (b *browser) open(url string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waitTime)
	defer cancel()
	b.must(chromedp.Do(ctx, chromedp.Navigate(url), chromedp.WaitReady("body")))
}

// await waits until an expression of the page is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waitTime)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			b.t.Fatalf("%s: did not come\n%s", what, b.text())
		}
	}
}

// sees waits for a text on the page.
func (b *browser) sees(text string) {
	b.t.Helper()
	b.await("the text "+text, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// text is what the page shows.
func (b *browser) text() string {
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return text
}

// value is the value of an expression.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	b.must(err)
	return v
}

// fill sets a field as typing does.
func (b *browser) fill(name, text string) {
	b.t.Helper()
	value[bool](b, fmt.Sprintf(`(()=>{const e=document.querySelector('main form [name="%s"]');e.value=%q;e.dispatchEvent(new Event('input',{bubbles:true}));return true})()`, name, text))
}

func quote(text string) string { b, _ := json.Marshal(text); return string(b) } // it is valid UTF-8

// press clicks the button whose text begins so.
func (b *browser) press(text string) {
	b.t.Helper()
	button := fmt.Sprintf("[...document.querySelectorAll('button')].find(e=>e.innerText.trim().startsWith(%q))", text)
	b.await("the button "+text, button)
	value[bool](b, "("+button+".click(), true)")
}

// look emulates a window and a colour scheme.
func (b *browser) look(width int64, scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	b.must(err)
	b.must(chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 900)))
}

// screenshot writes what the window shows to a file.
func (b *browser) screenshot(file string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.must(err)
	b.must(os.WriteFile(file, png, 0o644))
}

// quiet checks that the browser has reported nothing, and has asked no other host.
func (b *browser) quiet(host string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		b.t.Errorf("the browser reports: %s", m)
	}
	for _, h := range b.hosts {
		if h != host {
			b.t.Errorf("the page asked %s", h)
		}
	}
}
