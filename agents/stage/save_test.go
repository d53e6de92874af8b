package stage_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A file that cannot be written is reported, and written when it can be; the last content counts.
func TestAFileIsWrittenWhenItCanBe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reports := make(chan message.StagedOut, 100)
	p := stage.NewPorter("ann@x", nil, func(m protocol.Message) { reports <- m.Body.(message.StagedOut) }, slog.New(slog.DiscardHandler))
	defer p.Close()
	for _, content := range []string{"old", "new"} {
		p.Send(protocol.Message{Body: message.SaveFile{Sweep: "wing", Path: filepath.Join(dir, "results.csv"), Content: []byte(content)}})
		if r := <-reports; r.Launch != "wing" || r.Why == "" || !r.Again || !r.Here {
			t.Fatalf("reported %+v", r)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for good := 0; good < 2; {
		if r := <-reports; r.Why == "" {
			good++
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "results.csv")); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}

// Names that a job or its site chose stop one launch at most: what was printed replaces a directory
// of that name, and files that cannot be beside each other are the site's fault, which is final.
func TestNamesFromASiteStopNobody(t *testing.T) {
	for name, c := range map[string]struct {
		left, listed []string
		final        bool
	}{
		"a directory called stdout.txt": {[]string{"stdout.txt/x", "a"}, []string{"stdout.txt/x", "a"}, false},
		"a file within a file":          {[]string{"a"}, []string{"a", "a/b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			for _, f := range c.left {
				p.leave(f, "abc")
			}
			for _, f := range c.listed {
				p.grant.Outputs = append(p.grant.Outputs, fileOf(f, "abc"))
			}
			write(t, filepath.Join(p.root, "j1", "stdout"), "printed")
			dir, reports := t.TempDir(), make(chan message.StagedOut, 100)
			porter := stage.NewPorter(ann, func(context.Context, protocol.AgentID) (stage.Stream, error) {
				s, _ := p.link(ann, 0, 0)
				return s, nil
			}, func(m protocol.Message) { reports <- m.Body.(message.StagedOut) }, slog.New(slog.DiscardHandler))
			defer porter.Close()
			porter.Send(protocol.Message{Body: message.StageOut{Contract: "c", Launch: "l1", Seller: "site", Files: p.grant.Outputs, Dir: dir, Name: "task"}})
			if r := <-reports; r.Again || (r.Why != "") != c.final {
				t.Fatalf("reported %+v", r)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "task", "stdout.txt")); !c.final && (err != nil || string(b) != "printed") {
				t.Errorf("printed %q, %v", b, err)
			}
		})
	}
}

// A site that tells of more than the disk has room for is not begun with, and tried again.
func TestAFileWithoutRoomIsNotFetched(t *testing.T) {
	dir, reports := t.TempDir(), make(chan message.StagedOut, 100)
	p := newPlace(t)
	porter := stage.NewPorter(ann, func(context.Context, protocol.AgentID) (stage.Stream, error) {
		s, _ := p.link(ann, 0, 0)
		return s, nil
	}, func(m protocol.Message) { reports <- m.Body.(message.StagedOut) }, slog.New(slog.DiscardHandler))
	defer porter.Close()
	huge := fileOf("a", "abc")
	huge.Size = 1 << 49
	porter.Send(protocol.Message{Body: message.StageOut{Contract: "c", Launch: "l1", Seller: "site", Files: []protocol.StagedFile{huge}, Dir: dir, Name: "task"}})
	if r := <-reports; !r.Again || !r.Here || !strings.Contains(r.Why, "no space left on device") {
		t.Errorf("reported %+v", r)
	}
	onlyIn(t, dir)
}
