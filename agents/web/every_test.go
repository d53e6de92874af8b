package web_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func decode64(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// screens are the pages that docs/SCREENS.md shows, and their files.
var screens = map[string]string{"/compose": "compose", "/purchase/": "purchase", "/calendar": "calendar", "/": "books"}

// everyPage looks at every page, in light and dark and in a narrow window. No page reports
// anything, asks another host, is wider than its window, or fails axe-core, if that is there.
func everyPage(t *testing.T, m *market) {
	failed := "none"
	for _, p := range m.purchases() {
		if p.State == "failed" {
			failed = p.ID
		}
	}
	axe, err := os.ReadFile(os.Getenv("RAMP_TEST_AXE"))
	if err != nil {
		t.Log("AXE: not checked, since axe-core is not there:", err)
	}
	seldom := map[string][]string{"user": {"/purchase/" + failed, "/compose?from=" + failed, "/none"}, "bank": {"/statement?account=ann"}} // that links may not have reached
	for _, k := range kinds {
		kind := k[0]
		paths := m.walker(kind, k[1]).walk()
		for _, p := range seldom[kind] {
			if !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
		b := newBrowser(t)
		base := m.enter(b, kind, k[1])
		for _, p := range paths {
			b.open(base + p)
			b.await("the page", "document.querySelector('#live h1')")
			for _, look := range []struct {
				width       int64
				scheme, axe string
			}{{1280, "light", "all"}, {1280, "dark", "contrast"}, {390, "light", ""}, {320, "dark", "all"}, {320, "light", ""}} {
				b.look(look.width, look.scheme)
				if over := value[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
					t.Errorf("%s %s at %d px: %d px wider than the window", kind, p, look.width, over)
				}
				if len(axe) > 0 && look.axe != "" {
					b.axe(string(axe), look.axe == "contrast", fmt.Sprintf("%s %s, %s, %d px", kind, p, look.scheme, look.width))
				}
				b.keepEvery(kind, p, look.width, look.scheme)
				b.keepScreen(kind, p, look.width, look.scheme)
			}
		}
		if p := "/none"; kind == "user" { // a browser logs an answer of 404 itself
			b.mu.Lock()
			kept := b.messages[:0]
			for _, text := range b.messages {
				if !strings.Contains(text, p) {
					kept = append(kept, text)
				}
			}
			b.messages = kept
			b.mu.Unlock()
		}
		b.quiet(strings.TrimPrefix(base, "http://"))
	}
}

// axe runs axe-core on the page, or only its rule of contrast.
func (b *browser) axe(script string, contrast bool, where string) {
	b.t.Helper()
	only := "['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa']"
	if contrast {
		only = "{type:'rule',values:['color-contrast']}"
	}
	if !value[bool](b, "!!window.axe") {
		value[bool](b, script+";!!window.axe")
	}
	const look = "window.innerWidth+matchMedia('(prefers-color-scheme: dark)').matches"
	b.await("axe", `(window.axeAt!==`+look+`&&(window.axeAt=`+look+`,window.axeDone=null,axe.run(document,{runOnly:`+only+`}).then(r=>{window.axeDone=r.violations.map(v=>v.id+': '+v.nodes.map(n=>n.html.slice(0,160)+' '+n.failureSummary).join(' | ')).join('\n')})),window.axeDone!=null)`)
	if faults := value[string](b, "window.axeDone"); faults != "" {
		b.t.Errorf("%s: %s", where, faults)
	}
}

// keepEvery writes every page as a person sees it, if RAMP_SCREENS names a directory that has
// one of the name "every".
func (b *browser) keepEvery(kind, path string, width int64, scheme string) {
	dir := filepath.Join(os.Getenv("RAMP_SCREENS"), "every")
	if _, err := os.Stat(dir); err != nil || os.Getenv("RAMP_SCREENS") == "" || scheme != "light" || width == 320 {
		return
	}
	if n := strings.LastIndex(path, "/purchase/"); n >= 0 && !strings.HasSuffix(path, "/trace") {
		path = path[:min(len(path), 24)]
	}
	b.must(chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 1800)))
	b.screenshot(filepath.Join(dir, fmt.Sprintf("%s%s-%d.png", kind, strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(path), width)))
	b.look(width, scheme)
}

// keepScreen writes the screenshots of docs/SCREENS.md, if RAMP_SCREENS names a directory.
func (b *browser) keepScreen(kind, path string, width int64, scheme string) {
	dir := os.Getenv("RAMP_SCREENS")
	for p, name := range screens {
		if dir == "" || width != 1280 || p == "/" && (kind != "bank" || path != "/") || p != "/" && (!strings.HasPrefix(path, p) || strings.HasSuffix(path, "/trace")) {
			continue
		}
		b.screenshot(filepath.Join(dir, name+"-"+scheme+".png"))
	}
}
