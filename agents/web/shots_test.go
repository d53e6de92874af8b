package web_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestShots(t *testing.T) {
	base, link, paths, prefix := os.Getenv("SHOT_BASE"), os.Getenv("SHOT_LINK"), os.Getenv("SHOT_PATHS"), os.Getenv("SHOT_OUT")
	if base == "" {
		t.Skip()
	}
	b := newBrowser(t)
	b.open(link)
	b.await("nav", "document.querySelector('nav a')")
	for _, p := range strings.Fields(paths) {
		for _, w := range []int64{1280, 390} {
			b.look(w, map[int64]string{1280: "light", 390: "dark"}[w])
			b.open(base + p)
			time.Sleep(400 * time.Millisecond)
			if n := value[int](b, "document.documentElement.scrollWidth - innerWidth"); n > 0 {
				t.Errorf("%s at %d: %d px wider", p, w, n)
			}
			b.screenshot(prefix + strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(p) + map[int64]string{1280: "-w", 390: "-n"}[w] + ".png")
		}
	}
	b.quiet(strings.TrimPrefix(base, "http://"))
}
