package web_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// runInBrowser does what a stranger does: it fills in the form, sends files, approves, watches
// the output, and fetches what the program has left. A second program is killed.
func runInBrowser(t *testing.T, m *market) {
	dir := t.TempDir()
	data, script := filepath.Join(dir, "data.txt"), filepath.Join(dir, "work.sh")
	m.must(os.WriteFile(data, []byte(strings.Repeat("a line\n", 200_000)), 0o600)) // several pieces
	m.must(os.WriteFile(script, []byte("#!/bin/sh\necho \"<b>lines</b>:\" $(wc -l <data.txt)\nwc -l <data.txt >count.txt\nmkdir out && echo done >out/end.txt\n"), 0o600))
	b := newBrowser(t)
	base := m.enter(b, "user", "user")
	b.program(base, "count", "./work.sh", data, script)
	b.press("Ask the market")
	b.sees("Your decision")
	b.press("Buy for ")
	b.sees("State: settled.")
	b.follow("Its output and files")
	b.sees("<b>lines</b>: 200000")
	b.sees("exit 0")
	b.sees("count.txt")
	if got := string(decode64(t, b.download("count.txt"))); strings.TrimSpace(got) != "200000" {
		t.Errorf("count.txt: %q", got)
	}
	raw := decode64(t, b.download("All files (ZIP)"))
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	m.must(err)
	names := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		m.must(err)
		text, err := io.ReadAll(r)
		m.must(err)
		names[f.Name] = string(text)
	}
	if names["out/end.txt"] != "done\n" {
		t.Errorf("the archive has %d files: %.200v", len(names), names)
	}
	killedInBrowser(b, base)
	b.quiet(strings.TrimPrefix(base, "http://"))
}

func killedInBrowser(b *browser, base string) {
	b.t.Helper()
	b.program(base, "long", "echo begun; sleep 1000")
	b.press("Ask the market")
	b.sees("Your decision")
	b.press("Buy for ")
	b.sees("State: settled.")
	b.follow("Its output and files")
	b.await("its output", "document.querySelector('#stream').innerText.includes('begun')")
	b.press("Kill")
	b.sees("exit 137")
}

// program fills in the form of a program.
func (b *browser) program(base, name, command string, files ...string) {
	b.t.Helper()
	b.open(base + "/compose")
	b.fill("cores", "1")
	b.fill("wall", "10m")
	b.fill("within", "1h")
	b.fill("max-price", "60")
	b.fill("name", name)
	b.fill("command", command)
	if len(files) > 0 {
		b.must(chromedp.Do(b.ctx, chromedp.SetUploadFiles("input[name=files]", files)))
	}
	b.sees("Asks for 1 core for 10 min")
}

// follow clicks a link.
func (b *browser) follow(text string) {
	b.t.Helper()
	link := `[...document.querySelectorAll("a")].find(e=>e.innerText.trim()==` + quote(text) + `)`
	b.await("the link "+text, link)
	value[bool](b, "("+link+".click(), true)")
}

// download is what a link of the page sends, as Base64.
func (b *browser) download(text string) string {
	b.t.Helper()
	link := `[...document.querySelectorAll("a")].find(e=>e.innerText.trim()==` + quote(text) + `)`
	b.await("the link "+text, link)
	value[bool](b, `(window.got=null,fetch(`+link+`.href).then(async r=>{window.got=r.ok&&r.headers.get("Content-Disposition").startsWith("attachment")?(await r.bytes()).toBase64():"";window.gone=r.status}),true)`)
	b.await("the file "+text, "window.got!=null")
	return value[string](b, "window.got")
}
