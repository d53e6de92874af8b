package web_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"go/format"
	"io"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/a-h/templ/generator"
	"github.com/a-h/templ/parser/v2"
)

// The files of others are those that SOURCES lists, unchanged. .ci/web compares the list
// with npm's registry.
func TestTheFilesOfOthersAreUnchanged(t *testing.T) {
	list, err := os.ReadFile("assets/SOURCES")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"app.css": true, "app.js": true, "SOURCES": true} // our own
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] == "#" {
			continue
		}
		name := path.Base(f[2])
		text, err := unzipped("assets/" + name + ".gz")
		if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != f[3] {
			t.Errorf("%s is not that of %s %s: %v", name, f[0], f[1], err)
		}
		known[name+".gz"] = true
	}
	files, err := os.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f.Name()] {
			t.Errorf("assets/%s is not listed", f.Name())
		}
	}
}

// page_templ.go is what page.templ says; otherwise run go generate ./agents/web.
func TestTheTemplateIsGenerated(t *testing.T) {
	page, err := parser.Parse("page.templ")
	if err != nil {
		t.Fatal(err)
	}
	var code bytes.Buffer
	if _, err = generator.Generate(page, &code, generator.WithFileName("page.templ"), generator.WithVersion(templ.Version())); err != nil {
		t.Fatal(err)
	}
	want, err := format.Source(code.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile("page_templ.go"); err != nil || !bytes.Equal(have, want) {
		t.Errorf("page_templ.go is not that of page.templ: run go generate ./agents/web (%v)", err)
	}
}

func unzipped(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
