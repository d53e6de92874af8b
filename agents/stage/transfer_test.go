package stage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

// In whatever pieces a line carries bytes, wherever it breaks, whenever the site's
// agent dies and whatever of a half-written file is corrupted by that: what is put
// comes to be there, and what is fetched is what is there, byte by byte.
func TestTransfersComeToTheirEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newTransfer(t, rt)
		defer func() { x.p.stop() }()
		x.putAll()
		for i, in := range x.inputs {
			same(t, x.p.work(in.File.Path), x.contents[i])
		}
		if got := x.p.collect(); len(got.Outputs) != 0 || got.Why != "" {
			rt.Fatalf("inputs as they were are counted as outputs: %+v", got)
		}
		x.p.grant.Inputs, x.p.grant.Staging = nil, false
		x.p.grant.Outputs = x.p.collect().Outputs
		if len(x.p.grant.Outputs) != len(x.inputs) {
			rt.Fatalf("%d outputs, want %d", len(x.p.grant.Outputs), len(x.inputs))
		}
		x.getAll()
	})
}

type transfer struct {
	t        *testing.T
	rt       *rapid.T
	p        *place
	inputs   []message.RunInput
	contents [][]byte
	out      string
}

func newTransfer(t *testing.T, rt *rapid.T) *transfer {
	x := &transfer{t: t, rt: rt, out: t.TempDir()}
	from := t.TempDir()
	names := []string{"a", "deep/er/b", "it's `;$(reboot)`", "sp ace/.part", "ünï"}
	var files []protocol.StagedFile
	for _, name := range names[:rapid.IntRange(1, len(names)).Draw(rt, "files")] {
		n := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 3000), rapid.IntRange(250_000, 800_000)).Draw(rt, "size")
		content := make([]byte, n)
		for i := range content {
			content[i] = byte(i * (i >> 8) >> 2)
		}
		in := source(t, from, name, content)
		x.inputs, x.contents, files = append(x.inputs, in), append(x.contents, content), append(files, in.File)
	}
	x.p = newPlace(t, files...)
	return x
}

const maxBreaks = 8

// try makes exchanges until f has come to its end on one; the last of them never
// breaks.
func (x *transfer) try(f func(s stage.Stream) error) {
	for n := 0; ; n++ {
		breaks := 0
		if n < maxBreaks {
			breaks = rapid.OneOf(rapid.IntRange(0, 600), rapid.IntRange(0, 1_000_000)).Draw(x.rt, "breaks after")
			x.harm()
		}
		s, end := x.p.link(ann, x.pieces(), breaks)
		err := f(s)
		served := end()
		switch {
		case err == nil:
			return
		case n > maxBreaks+len(x.inputs):
			x.rt.Fatalf("it does not come to its end: %v, served %v", err, served)
		}
	}
}

// pieces is in how large pieces a line carries bytes: very small ones for little.
func (x *transfer) pieces() int {
	all := 0
	for _, c := range x.contents {
		all += len(c)
	}
	if all < 5000 {
		return rapid.IntRange(1, 9).Draw(x.rt, "small pieces")
	}
	return rapid.SampledFrom([]int{0, 1000, 4096, 300_000}).Draw(x.rt, "pieces")
}

// harm is what may happen between two exchanges.
func (x *transfer) harm() {
	switch rapid.IntRange(0, 5).Draw(x.rt, "harm") {
	case 0:
		x.p.stop()
		x.p.start()
	case 1:
		x.spoil(filepath.Join(x.p.root, "j1", "part"))
		x.spoil(x.out)
	}
}

// spoil turns the end of half-written files into something else.
func (x *transfer) spoil(dir string) {
	parts, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, err2 := filepath.Glob(filepath.Join(dir, ".ramp-*.part"))
	if errors.Join(err, err2) != nil {
		x.rt.Fatal(err, err2)
	}
	for _, path := range append(parts, hidden...) {
		if dir == x.out && filepath.Ext(path) != ".part" || filepath.Base(path) == ".part" {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			continue // a directory
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			x.rt.Fatal(err)
		}
	}
}

func (x *transfer) putAll() {
	x.try(func(s stage.Stream) error {
		for _, in := range x.inputs {
			if err := stage.Put(s, key, in); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *transfer) getAll() {
	root, err := os.OpenRoot(x.out)
	if err != nil {
		x.rt.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	x.try(func(s stage.Stream) error {
		for _, f := range x.p.grant.Outputs {
			if err := stage.Get(s, key, f, root); err != nil {
				return err
			}
		}
		return nil
	})
	for i, in := range x.inputs {
		same(x.t, filepath.Join(x.out, filepath.FromSlash(in.File.Path)), x.contents[i])
	}
	left, err := filepath.Glob(filepath.Join(x.out, ".ramp-*"))
	if err != nil || len(left) > 0 {
		x.rt.Fatal(fmt.Sprintf("half-written files are left: %q (%v)", left, err))
	}
}
