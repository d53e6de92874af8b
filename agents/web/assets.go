package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"sync"
)

//go:embed assets/*.js assets/*.css assets/*.gz
var assets embed.FS

const assetPath = "/assets/"

// bundles are the files that browsers fetch, and what each is made of.
var bundles = map[string]struct {
	kind  string
	parts []string
}{
	"app.css": {"text/css; charset=utf-8", []string{"pico.classless.min.css", "app.css"}},
	"app.js":  {"text/javascript; charset=utf-8", []string{"htmx.min.js", "hx-sse.min.js", "app.js"}},
}

// bundle is a file in both forms, with its hash.
type bundle struct {
	kind         string
	plain, small []byte
	hash         string
}

// bundled makes the bundles once. Their parts are embedded, so that they cannot be missing.
var bundled = sync.OnceValue(func() map[string]bundle {
	made := map[string]bundle{}
	for name, b := range bundles {
		var plain bytes.Buffer
		for _, part := range b.parts {
			text, err := asset(part)
			if err != nil {
				panic(err)
			}
			plain.Write(text)
			plain.WriteByte('\n')
		}
		made[name] = bundle{b.kind, plain.Bytes(), zipped(plain.Bytes()), hashOf(plain.Bytes())}
	}
	return made
})

// asset reads a part. The files of others are kept compressed, which makes the program smaller.
func asset(name string) ([]byte, error) {
	if text, err := assets.ReadFile("assets/" + name); err == nil {
		return text, nil
	}
	f, err := assets.Open("assets/" + name + ".gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// zippers are used again: a new one takes most of a megabyte.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.DefaultCompression) // the level is valid
	return z
}}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := zippers.Get().(*gzip.Writer) //nolint:forcetypeassert // it has nothing else
	z.Reset(&out)
	_, _ = z.Write(b) // a buffer takes everything
	_ = z.Close()
	zippers.Put(z)
	return out.Bytes()
}

func assetURL(name string) string { return assetPath + bundled()[name].hash + "/" + name }

// serveAsset serves a bundle. Its path names its content, so browsers may keep it without asking again.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	b, ok := bundled()[path.Base(r.URL.Path)]
	if !ok || r.URL.Path != assetURL(path.Base(r.URL.Path)) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", b.kind)
	w.Header().Set("Cache-Control", "max-age=31536000, immutable")
	page{status: http.StatusOK, plain: b.plain, small: func() []byte { return b.small }}.send(w, r)
}
