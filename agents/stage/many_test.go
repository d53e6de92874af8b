package stage_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Of inputs that come one after the other the role is told that none is missing once,
// when the disk has them all.
func TestTheLastOfTheInputsIsTold(t *testing.T) {
	from := t.TempDir()
	var inputs []message.RunInput
	var files []protocol.StagedFile
	for i := range 50 {
		in := source(t, from, "f"+strconv.Itoa(i), []byte(strconv.Itoa(i)))
		inputs, files = append(inputs, in), append(files, in.File)
	}
	p := newPlace(t, files...)
	bring := func(list ...message.RunInput) (counts []int) {
		t.Helper()
		for len(p.told) > 0 {
			<-p.told
		}
		for _, in := range list {
			if err := p.put(in); err != nil {
				t.Fatal(err)
			}
		}
		for len(p.told) > 0 {
			counts = append(counts, (<-p.told).Body.(message.Prepared).Missing)
		}
		return counts
	}
	if got := bring(inputs[:49]...); len(got) == 0 || got[0] != 49 || got[len(got)-1] == 0 {
		t.Fatalf("before the last came, the role was told that %v are missing", got)
	}
	if err := os.Remove(p.work("f7")); err != nil {
		t.Fatal(err)
	}
	if got := bring(inputs[49]); len(got) != 1 || got[0] != 1 {
		t.Fatalf("with one that is gone again the role was told that %v are missing", got)
	}
	if got := bring(inputs[7]); len(got) != 1 || got[0] != 0 {
		t.Fatalf("in the end the role was told that %v are missing", got)
	}
}

// What lies deeper than a path can name is not looked at: one directory is left out.
func TestDeepDirectoriesAreNotWalked(t *testing.T) {
	p := newPlace(t)
	deep := strings.Repeat("d/", protocol.MaxPathDepth+1)
	for _, name := range []string{"a", "b", "c", deep + "a", deep + "b", deep + deep + "c"} {
		p.leave(name, "x")
	}
	got := p.collect()
	if len(got.Outputs) != 3 || !strings.HasPrefix(got.Why, "1 of its files is left out: ") || !strings.Contains(got.Why, "names deep, at most") {
		t.Fatalf("collected %d files, why %q", len(got.Outputs), got.Why)
	}
}

// However deep a job's directories are, and whatever it lets nobody do in them, nothing of
// it stays.
func TestWhateverAJobLeavesIsRemoved(t *testing.T) {
	p := newPlace(t)
	p.leave("locked/in/file", "x")
	if err := errors.Join(os.Chmod(p.work("locked/in"), 0), os.Chmod(p.work("locked"), 0o500)); err != nil {
		t.Fatal(err)
	}
	nest(t, p.work("."), 20_000)
	p.depot.Send(protocol.Message{Body: message.Discard{Job: "j1"}})
	p.ask(message.Prepare{Job: "j2"})
	if _, err := os.Stat(filepath.Join(p.root, "j1")); !os.IsNotExist(err) {
		t.Fatalf("its directory is still there: %v", err)
	}
}

// nest makes directories below each other, deeper than a path can name.
func nest(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	for range depth {
		if err != nil {
			t.Fatal(err)
		}
		var below int
		if err = unix.Mkdirat(at, "d", 0o700); err == nil {
			below, err = unix.Openat(at, "d", unix.O_DIRECTORY, 0)
		}
		err = errors.Join(err, unix.Close(at))
		at = below
	}
	if err := errors.Join(err, unix.Close(at)); err != nil {
		t.Fatal(err)
	}
}

// An input that is larger than all outputs may be is none of them, as long as it is the
// same.
func TestALargeInputIsNoOutput(t *testing.T) {
	in := fileOf("in", "input")
	p := newPlace(t, in)
	p.stop()
	p.most = 3
	p.start()
	p.leave("in", "input")
	p.leave("out", "abc")
	if got := p.collect(); len(got.Outputs) != 1 || got.Why != "" {
		t.Fatalf("collected %+v", got)
	}
	p.leave("in", "INPUT")
	if got := p.collect(); len(got.Outputs) != 0 || got.Why == "" {
		t.Fatalf("changed, it counts: collected %+v", got)
	}
}

// BenchmarkManySmallFiles brings as many inputs as a job may have over one exchange. What
// one costs must not grow with their number.
func BenchmarkManySmallFiles(b *testing.B) {
	for _, n := range []int{256, protocol.MaxStaged} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			from := b.TempDir()
			var inputs []message.RunInput
			var files []protocol.StagedFile
			for i := range n {
				in := source(b, from, filepath.Join(strconv.Itoa(i%64), strconv.Itoa(i)), []byte("x"))
				inputs, files = append(inputs, in), append(files, in.File)
			}
			for b.Loop() {
				p := newPlace(b, files...)
				s, end := p.link(ann, 0, 0)
				for _, in := range inputs {
					if err := stage.Put(s, key, in); err != nil {
						b.Fatal(err)
					}
				}
				_ = end()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/file")
		})
	}
}
