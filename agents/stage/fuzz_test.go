package stage_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

// canned is a stream on which the other side says what it says, whatever it is
// told.
type canned struct {
	io.Reader
	said bytes.Buffer
}

func (c *canned) Write(b []byte) (int, error) { return c.said.Write(b) }
func (c *canned) SetDeadline(time.Time) error { return nil }
func (c *canned) CloseWrite() error           { return nil }
func (c *canned) Close() error                { return nil }
func head(s string) []byte                    { return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...) }
func say(b []byte) *canned                    { return &canned{Reader: bytes.NewReader(b)} }
func join(parts ...[]byte) []byte             { return bytes.Join(parts, nil) }
func part(kind byte, s string) []byte         { return append([]byte{kind}, head(s)...) }

// Whatever somebody says to a site: nothing appears but the file that was
// announced, as it was announced, and nothing lies outside of the job.
func FuzzServe(f *testing.F) {
	put := `{"contract":"c","launch":"l1","do":"put","path":"a"}`
	f.Add(join(head(put), []byte("abc"), head(`{"contract":"c","launch":"l1","do":"log"}`)))
	f.Add(join(head(put), []byte("ab")))
	f.Add(join(head(`{"contract":"c","launch":"l1","do":"get","path":"out","offset":1}`), head(`{"contract":"c","launch":"l1","do":"get","path":"../x"}`)))
	f.Add(head(`{"contract":"c","launch":"l1","do":"log","offset":9223372036854775807,"errors":1}`))
	f.Add([]byte{0, 1, 0, 0})
	p := newPlace(f, fileOf("a", "abc"))
	p.leave("out", "left")
	p.grant.Outputs, p.grant.Over = []protocol.StagedFile{fileOf("out", "left")}, true
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = p.depot.Serve(ctx, ann, say(b), p.refused) // whether it ends well is not the question
		if got, err := os.ReadFile(p.work("a")); err == nil && string(got) != "abc" {
			t.Fatalf("there is an input %q that was not announced", got)
		}
		for _, dir := range []struct {
			path string
			most int
		}{{p.root, 1}, {filepath.Join(p.root, "j1"), 3}, {p.work(""), 2}, {filepath.Join(p.root, "j1", "part"), 1}} {
			if list, err := os.ReadDir(dir.path); err != nil || len(list) > dir.most {
				t.Fatalf("%s has %d files (%v), want at most %d", dir.path, len(list), err, dir.most)
			}
		}
		for len(p.told) > 0 {
			<-p.told
		}
		_ = os.Remove(p.work("a"))
	})
}

// Whatever a site says to a buyer that fetches: only the right bytes are kept, and
// only where they belong.
func FuzzGet(f *testing.F) {
	ok := head(`{"ok":true,"size":3}`)
	f.Add(join(ok, []byte("abc")))
	f.Add(join(ok, []byte("abd")))
	f.Add(join(ok, []byte("ab")))
	f.Add(head(`{"code":"unknown","note":"` + "\x1b[2J" + `"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close() //nolint:errcheck // it holds nothing back
		err = stage.Get(say(b), key, fileOf("sub/a", "abc"), root)
		got, readErr := os.ReadFile(filepath.Join(dir, "sub", "a"))
		if (err == nil) != (string(got) == "abc") || readErr == nil && err != nil {
			t.Fatalf("kept %q with error %v", got, err)
		}
	})
}

// Whatever a site says to a buyer that brings a file: it is sent at most once, and
// that it is there is believed only with the site's last word.
func FuzzPut(f *testing.F) {
	f.Add(join(head(`{"ok":true}`), head(`{"ok":true,"offset":3}`)))
	f.Add(join(head(`{"ok":true,"offset":4}`), head(`{"ok":true}`)))
	f.Add(join(head(`{"ok":true,"offset":-1}`), head(`{"ok":true}`)))
	f.Add(join(head(`{"ok":true}`), head(`{"code":"mismatch"}`)))
	path := filepath.Join(f.TempDir(), "a")
	write(f, path, "abc")
	in := message.RunInput{File: fileOf("a", "abc"), Source: path}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := say(b)
		err := stage.Put(s, key, in)
		sent := s.said.Bytes()
		request := int(binary.BigEndian.Uint32(sent)) + 4
		if len(sent) > request+3 || err == nil && bytes.Count(b, []byte("{")) < 2 {
			t.Fatalf("sent %q, error %v", sent[request:], err)
		}
	})
}

// Whatever a site says a job has printed: no more is written than it sent, and the
// offsets count it.
func FuzzLog(f *testing.F) {
	f.Add(join(head(`{"ok":true}`), part(1, "out"), part(2, "err"), part(0, ""), part(3, "")))
	f.Add(join(head(`{"ok":true}`), part(9, "?")))
	f.Add(join(head(`{"ok":true}`), []byte{1, 0xff, 0xff, 0xff, 0xff}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out, errs bytes.Buffer
		var at, errAt int64
		_ = stage.Log(say(b), key, &at, &errAt, true, &out, &errs) // likewise
		if at != int64(out.Len()) || errAt != int64(errs.Len()) || out.Len()+errs.Len() > len(b) {
			t.Fatalf("wrote %d and %d bytes of %d, at %d and %d", out.Len(), errs.Len(), len(b), at, errAt)
		}
	})
}
