package stage_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

func fileOf(path, content string) protocol.StagedFile {
	sum := sha256.Sum256([]byte(content))
	return protocol.StagedFile{Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

// onlyIn fails if a directory tree has a file but those named.
func onlyIn(t *testing.T, dir string, names ...string) {
	t.Helper()
	want := strings.Join(names, " ")
	var got []string
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, p) // below dir
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil || strings.Join(got, " ") != want {
		t.Fatalf("%s has %q (%v), want %q", dir, got, err, want)
	}
}

func TestWhatIsAskedIsRefusedInOneLine(t *testing.T) {
	for _, c := range []struct{ name, from, request, want string }{
		{"by another than the buyer", "eve", `{"contract":"c","launch":"l1","do":"put","path":"a"}`, `"code":"unknown","note":"no such launch of yours here"`},
		{"of another launch", "ann", `{"contract":"c","launch":"l2","do":"put","path":"a"}`, `"code":"unknown"`},
		{"a file that was not announced", "ann", `{"contract":"c","launch":"l1","do":"put","path":"b"}`, `"code":"unknown","note":"no file \"b\" was announced"`},
		{"a path that climbs out", "ann", `{"contract":"c","launch":"l1","do":"put","path":"../../../etc/passwd"}`, `"code":"unknown"`},
		{"an absolute path", "ann", `{"contract":"c","launch":"l1","do":"get","path":"/etc/passwd"}`, `"code":"unknown"`},
		{"a path with a newline", "ann", `{"contract":"c","launch":"l1","do":"get","path":"a\nb"}`, `"code":"unknown"`},
		{"a path without end", "ann", `{"contract":"c","launch":"l1","do":"get","path":"` + strings.Repeat("x", 5000) + `"}`, `"code":"unknown"`},
		{"what is not done", "ann", `{"contract":"c","launch":"l1","do":"rm","path":"a"}`, `"code":"malformed","note":"\"rm\" is not done here"`},
		{"from before the beginning", "ann", `{"contract":"c","launch":"l1","do":"get","path":"out","offset":-1}`, `"code":"malformed","note":"offset -1: want 0..3, the size of the file"`},
		{"from behind the end", "ann", `{"contract":"c","launch":"l1","do":"get","path":"out","offset":4}`, `"code":"malformed"`},
		{"a log from before its beginning", "ann", `{"contract":"c","launch":"l1","do":"log","offset":-5}`, `"code":"malformed"`},
		{"a file that has changed since it was counted", "ann", `{"contract":"c","launch":"l1","do":"get","path":"changed"}`, `"code":"mismatch"`},
		{"a file that became a link", "ann", `{"contract":"c","launch":"l1","do":"get","path":"link"}`, `"code":"unknown"`},
		{"a file that is gone", "ann", `{"contract":"c","launch":"l1","do":"get","path":"gone"}`, `"code":"unknown"`},
		{"no request", "ann", `[`, `closed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, fileOf("a", "abc"))
			p.leave("out", "abc")
			p.leave("changed", "longer")
			if err := os.Symlink("/etc/passwd", p.work("link")); err != nil {
				t.Fatal(err)
			}
			p.grant.Outputs = []protocol.StagedFile{fileOf("out", "abc"), fileOf("changed", "abc"), fileOf("link", "abc"), fileOf("gone", "abc")}
			got := p.asks(protocol.AgentID(c.from), c.request)
			if !strings.Contains(got, c.want) || strings.Contains(got, "\n") || len(got) > 1000 {
				t.Fatalf("answered %s, want one line with %s", got, c.want)
			}
		})
	}
}

// What is not the file that was announced is not there at all.
func TestInputsAreRefused(t *testing.T) {
	dir := t.TempDir()
	in := source(t, dir, "a", []byte("abc"))
	for _, c := range []struct {
		name string
		bend func(p *place, in *message.RunInput)
		want string
	}{
		{"that are others than announced", func(p *place, in *message.RunInput) {
			in.File.SHA256, in.File.BLAKE3 = strings.Repeat("0", 64), strings.Repeat("0", 64)
			p.grant.Inputs[0] = in.File
		}, "it has changed since it was announced"},
		{"that are longer than announced", func(p *place, in *message.RunInput) {
			in.File.Size = 2
			p.grant.Inputs[0] = in.File
		}, "it has changed since it was announced"},
		{"that are gone", func(_ *place, in *message.RunInput) { in.Source += "x" }, "cannot be sent"},
		{"that are directories", func(_ *place, in *message.RunInput) { in.Source = filepath.Dir(in.Source) }, "cannot be sent"},
		{"when no more are taken", func(p *place, _ *message.RunInput) { p.grant.Staging = false }, "expired: the launch takes no more inputs"},
		{"when the site's disk is full", func(p *place, _ *message.RunInput) {
			p.stop()
			p.free.Store(64<<20 + 2)
			p.start()
		}, "unavailable: the disk of the site is full: the file needs 3 bytes, 2 are free"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, in := newPlace(t, in.File), in
			c.bend(p, &in)
			err := p.put(in)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want one line with %q", err, c.want)
			}
			onlyIn(t, filepath.Join(p.root, "j1", "work"))
		})
	}
}

func TestJobsAreNamedForDirectories(t *testing.T) {
	p := newPlace(t)
	for _, job := range []string{"../up", "/abs", "a/b", "..", ""} {
		if got := p.ask(message.Prepare{Job: job}).(message.Prepared); got.Why == "" {
			t.Fatalf("job %q has a directory", job)
		}
		p.depot.Send(protocol.Message{Body: message.Discard{Job: job}})
	}
	onlyIn(t, filepath.Join(p.root, "j1"), "agent")
	if _, err := os.Stat(p.work("")); err != nil {
		t.Fatalf("a job of another name took the directory: %v", err)
	}
	p.depot.Send(protocol.Message{Body: message.Discard{Job: "j1"}})
	p.ask(message.Prepare{Job: "j2"})
	if _, err := os.Stat(filepath.Join(p.root, "j1")); !os.IsNotExist(err) {
		t.Fatalf("a job that is over keeps its directory: %v", err)
	}
}

func TestOutputsAreBounded(t *testing.T) {
	t.Run("more bytes than allowed are not kept at all", func(t *testing.T) {
		p := newPlace(t)
		p.stop()
		p.most = 5
		p.start()
		p.leave("a", "abc")
		p.leave("b", "de")
		if got := p.collect(); len(got.Outputs) != 2 || got.Why != "" {
			t.Fatalf("collected %+v, want what is just allowed", got)
		}
		p.leave("b", "def")
		got := p.collect()
		if len(got.Outputs) != 0 || got.Why != "its outputs exceed 5 bytes, the most that this site keeps" {
			t.Fatalf("collected %+v", got)
		}
	})
	t.Run("nor one file that is larger", func(t *testing.T) {
		p := newPlace(t)
		p.stop()
		p.most = 5
		p.start()
		p.leave("sparse", "")
		if err := os.Truncate(p.work("sparse"), 1<<50); err != nil {
			t.Skipf("the file system has no such files: %v", err)
		}
		if got := p.collect(); len(got.Outputs) != 0 || got.Why == "" {
			t.Fatalf("collected %+v", got)
		}
	})
	t.Run("nor more files than allowed", func(t *testing.T) {
		p := newPlace(t)
		for i := range protocol.MaxStaged + 1 {
			p.leave("f"+strconv.Itoa(i), "")
		}
		if got := p.collect(); len(got.Outputs) != 0 || !strings.Contains(got.Why, "exceed 4096 files") {
			t.Fatalf("collected %d files, why %q", len(got.Outputs), got.Why)
		}
	})
}

// What is no plain file of the job's is left out, and the first of it is named.
func TestOddOutputsAreLeftOut(t *testing.T) {
	p := newPlace(t, fileOf("in", "input"), fileOf("changed", "before"))
	p.leave("in", "input")
	p.leave("changed", "after")
	p.leave("`;$(touch pwned)` \"quoted'", "fine")
	p.leave("new\nline", "odd")
	p.leave("sub/deep", "fine")
	for link, to := range map[string]string{"link": "/etc/passwd", "dir": "/etc", "up": "../../..", "loop": "loop"} {
		if err := os.Symlink(to, p.work(link)); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(p.root, "secret")
	write(t, outside, "secret")
	if err := os.Link(outside, p.work("second")); err != nil {
		t.Fatal(err)
	}
	got := p.collect()
	var names []string
	for _, f := range got.Outputs {
		names = append(names, f.Path)
	}
	if want := "`;$(touch pwned)` \"quoted'|changed|sub/deep"; strings.Join(names, "|") != want {
		t.Fatalf("collected %q, want %q", names, want)
	}
	if !strings.HasPrefix(got.Why, "6 of its files are left out: ") || strings.Contains(got.Why, "\n") {
		t.Fatalf("why %q", got.Why)
	}
	p.grant.Outputs = got.Outputs
	out := t.TempDir()
	for _, f := range got.Outputs {
		if err := p.get(f, out); err != nil {
			t.Fatal(err)
		}
	}
	onlyIn(t, out, "`;$(touch pwned)` \"quoted'", "changed", "sub/deep")
}

func TestWhatIsLeftOutIsNamedWithItsDirectory(t *testing.T) {
	p := newPlace(t)
	p.leave("sub/deep", "fine")
	if err := os.Symlink("deep", p.work("sub/link")); err != nil {
		t.Fatal(err)
	}
	if got := p.collect(); got.Why != `1 of its files is left out: "sub/link" is not a regular file` {
		t.Fatalf("why %q", got.Why)
	}
}

// A site cannot make its buyer write elsewhere, or keep what is not right.
func TestWhatIsFetchedStaysWhereItBelongs(t *testing.T) {
	for _, path := range []string{"../up", "/abs", "a/../../b", "a\\b", "", "a\nb"} {
		p := newPlace(t)
		if err := p.get(fileOf(path, "x"), t.TempDir()); err == nil {
			t.Fatalf("a file named %q was fetched", path)
		}
	}
	t.Run("a link out of the directory is not followed", func(t *testing.T) {
		p, out, outside := newPlace(t), t.TempDir(), t.TempDir()
		p.leave("sub/a", "abc")
		p.grant.Outputs = []protocol.StagedFile{fileOf("sub/a", "abc")}
		if err := os.Symlink(outside, filepath.Join(out, "sub")); err != nil {
			t.Fatal(err)
		}
		if err := p.get(fileOf("sub/a", "abc"), out); err == nil {
			t.Fatal("it was written through a link")
		}
		onlyIn(t, outside)
	})
	t.Run("what has another SHA-256 is not kept", func(t *testing.T) {
		p, out := newPlace(t), t.TempDir()
		p.leave("a", "abd")
		p.grant.Outputs = []protocol.StagedFile{fileOf("a", "abc")}
		if err := p.get(fileOf("a", "abc"), out); err == nil || !strings.Contains(err.Error(), "announced SHA-256") {
			t.Fatalf("error %v", err)
		}
		onlyIn(t, out)
	})
	t.Run("fetched twice at once, as after a kill, it is there", func(t *testing.T) {
		content := strings.Repeat("x", 300_000)
		p, out := newPlace(t), t.TempDir()
		p.leave("a", content)
		p.grant.Outputs = []protocol.StagedFile{fileOf("a", content)}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := p.get(fileOf("a", content), out); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		same(t, filepath.Join(out, "a"), []byte(content))
		onlyIn(t, out, "a")
	})
	t.Run("what is there is not fetched again, and another is replaced", func(t *testing.T) {
		p, out := newPlace(t), t.TempDir()
		write(t, filepath.Join(out, "a"), "abc")
		if err := p.get(fileOf("a", "abc"), out); err != nil { // the site does not have it
			t.Fatal(err)
		}
		p.leave("a", "new")
		p.grant.Outputs = []protocol.StagedFile{fileOf("a", "new")}
		if err := p.get(fileOf("a", "new"), out); err != nil {
			t.Fatal(err)
		}
		same(t, filepath.Join(out, "a"), []byte("new"))
	})
}

// While one exchange brings a file, another cannot; and nothing of it is seen.
func TestHalfAFileIsNotThere(t *testing.T) {
	in := source(t, t.TempDir(), "a", []byte(strings.Repeat("x", 100_000)))
	p := newPlace(t, in.File)
	s, end := p.link(ann, 10, 60_000)
	if err := stage.Put(s, key, in); err == nil {
		t.Fatal("the line did not break")
	}
	_ = end()
	onlyIn(t, filepath.Join(p.root, "j1", "work"))
	if got := p.ask(message.Prepare{Job: "j1", Inputs: p.grant.Inputs}).(message.Prepared); got.Missing != 1 {
		t.Fatalf("prepared %+v, want one missing", got)
	}
	if err := p.put(in); err != nil {
		t.Fatal(err)
	}
	onlyIn(t, filepath.Join(p.root, "j1", "work"), "a")
	if err := p.put(in); err != nil {
		t.Fatalf("brought once more: %v", err)
	}
}

// Outputs above the bound leave the disk at once, and the reason is told again after a
// crash of the site.
func TestOutputsAboveTheBoundAreRemovedAtOnce(t *testing.T) {
	p := newPlace(t)
	p.stop()
	p.most = 10
	p.start()
	p.leave("sub/out", "more than ten bytes")
	first := p.collect()
	if !strings.Contains(first.Why, "exceed 10 bytes") || len(first.Outputs) > 0 {
		t.Fatalf("%+v", first)
	}
	if _, err := os.Stat(p.work("")); !os.IsNotExist(err) {
		t.Errorf("the outputs stand: %v", err)
	}
	if again := p.collect(); again.Why != first.Why {
		t.Errorf("then %q, first %q", again.Why, first.Why)
	}
}

// Directories of launches that the agent has forgotten are removed when it starts: only its
// own, and no others.
func TestForgottenLaunchesAreSweptAtTheStart(t *testing.T) {
	p := newPlace(t)
	p.leave("out", "kept")
	p.stop()
	write(t, filepath.Join(p.root, "forgotten", "work", "out"), "x")
	write(t, filepath.Join(p.root, "forgotten", "agent"), "site")
	write(t, filepath.Join(p.root, "theirs", "agent"), "another site")
	write(t, filepath.Join(p.root, "other", "file"), "of nobody known")
	p.known = func(job string) bool { return job == "j1" }
	p.start()
	onlyIn(t, p.root, "j1/agent", "j1/work/out", "other/file", "theirs/agent")
}
