package acl_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol/acl"
)

func FuzzParse(f *testing.F) {
	seed(f, "/*.acl")
	f.Add([]byte("(inform :content #3\"a\\b :reply-by +00000001T000010500 :X-a (b \"c\"))"))
	f.Add([]byte("(inform :content \"a\xf5\" :x-jade-encoding other :x-a 1)")) // bytes with another encoding
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := acl.Parse(b)
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatalf("read, but not valid: %v", err)
		}
		out := acl.Format(m)
		got, err := acl.Parse(out)
		if err != nil || !cmp.Equal(m, got) {
			t.Fatalf("%v: %s\nfrom:\n%s", err, cmp.Diff(m, got), out)
		}
		checkJSON(t, m)
		if list, err := readAll("; out\n" + string(b) + "\n; in\n" + string(out)); err != nil || !cmp.Equal(list, []acl.Message{m, m}) {
			t.Fatalf("twice: %v: %s", err, cmp.Diff(list, []acl.Message{m, m}))
		}
	})
}

func FuzzJSON(f *testing.F) {
	seed(f, "/*.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		var m acl.Message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		checkJSON(t, m)
		got, err := acl.Parse(acl.Format(m))
		if err != nil || !cmp.Equal(m, got) {
			t.Fatalf("%v: %s", err, cmp.Diff(m, got))
		}
	})
}

func checkJSON(t *testing.T, m acl.Message) {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got acl.Message
	if err := json.Unmarshal(b, &got); err != nil || !cmp.Equal(m, got) {
		t.Fatalf("%v: %s\nfrom:\n%s", err, cmp.Diff(m, got), b)
	}
}

func seed(f *testing.F, pattern string) {
	files, err := filepath.Glob(goldens + pattern)
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files (%v)", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func BenchmarkParse(b *testing.B) {
	in, err := os.ReadFile(goldens + "/platform-request.acl")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := acl.Parse(in); err != nil {
			b.Fatal(err)
		}
	}
}
