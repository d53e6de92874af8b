package parcels_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/parcels"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

var ctx = context.Background()

func nobody() ([]message.Program, error) { return nil, nil }

const part = "00112233445566778899aabbccddeeff"

func TestPiecesBecomeAFile(t *testing.T) {
	s := parcels.Shelf{Dir: filepath.Join(t.TempDir(), "parcels"), Needed: nobody}
	for i, q := range []control.UploadCall{
		{Data: []byte("#!/bin/sh\n")},
		{Data: []byte("#!/bin/sh\n")}, // its answer was lost
		{At: 10, Data: []byte("echo ")},
		{At: 10, Data: []byte("echo ")},
		{At: 15, Data: []byte("on\n"), Last: true},
	} {
		q.ID, q.Path, q.Part = "p1", "bin/run", part
		in, err := s.Take(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if !q.Last {
			continue
		}
		b, err := os.ReadFile(in.Source)
		if err != nil || string(b) != "#!/bin/sh\necho on\n" || in.File.Path != "bin/run" || in.File.Size != 18 || !in.File.Exec || in.File.Validate() != nil {
			t.Errorf("piece %d: %+v, %q, %v", i, in, b, err)
		}
	}
	in, err := s.Take(ctx, control.UploadCall{ID: "p1", Path: "empty", Part: part, Last: true})
	if err != nil || in.File.Size != 0 || in.File.Exec {
		t.Errorf("an empty file: %+v, %v", in, err)
	}
}

// A form that is sent again changes no file, whether the first order is paid or not.
func TestAFileIsNeverReplaced(t *testing.T) {
	s := parcels.Shelf{Dir: filepath.Join(t.TempDir(), "parcels"), Needed: nobody}
	take := func(part, data string, last bool) (message.RunInput, error) {
		return s.Take(ctx, control.UploadCall{ID: "p1", Path: "in/x", Part: part, Data: []byte(data), Last: last})
	}
	const second, third = "ff112233445566778899aabbccddeeff", "ee112233445566778899aabbccddeeff"
	if _, err := take(third, "on", false); err != nil { // interrupted
		t.Fatal(err)
	}
	first, err := take(part, "one", true)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := take(second, "one", true); err != nil || again != first {
		t.Errorf("the same again: %+v, %v; want %+v", again, err, first)
	}
	_, err = take(second, "two", true)
	if code, _ := exit.Of(err); code != exit.Usage || !strings.Contains(err.Error(), "sent before with another in/x") {
		t.Errorf("another: %v", err)
	}
	if b, err := os.ReadFile(first.Source); err != nil || string(b) != "one" {
		t.Errorf("there is %q, %v", b, err)
	}
	if halves, _ := filepath.Glob(filepath.Join(s.Dir, "in-p1", ".ramp-*")); len(halves) != 1 {
		t.Errorf("left: %q", halves)
	}
}

func TestBadPiecesAreRefused(t *testing.T) {
	for name, change := range map[string]func(q *control.UploadCall){
		"an ID that is a path":    func(q *control.UploadCall) { q.ID = "../x" },
		"no ID":                   func(q *control.UploadCall) { q.ID = "" },
		"a path that leads out":   func(q *control.UploadCall) { q.Path = "../x" },
		"an absolute path":        func(q *control.UploadCall) { q.Path = "/etc/passwd" },
		"no path":                 func(q *control.UploadCall) { q.Path = "" },
		"a part that is a path":   func(q *control.UploadCall) { q.Part = "/../../0112233445566778899aabbcc" },
		"a piece that is too big": func(q *control.UploadCall) { q.Data = make([]byte, parcels.MaxPiece+1) },
		"a negative place":        func(q *control.UploadCall) { q.At = -1 },
		"a place out of bounds":   func(q *control.UploadCall) { q.At = parcels.MaxUpload },
		"a piece that is missing": func(q *control.UploadCall) { q.At = 7 },
		"a piece that came twice": func(q *control.UploadCall) { q.At = 0 },
	} {
		dir := t.TempDir()
		s := parcels.Shelf{Dir: filepath.Join(dir, "parcels"), Needed: nobody}
		q := control.UploadCall{ID: "p1", Path: "x", Part: part, Data: []byte("one")}
		if _, err := s.Take(ctx, q); err != nil {
			t.Fatal(err)
		}
		q = control.UploadCall{ID: "p1", Path: "x", Part: part, At: 3, Data: []byte("two"), Last: true}
		change(&q)
		if in, err := s.Take(ctx, q); err == nil {
			t.Errorf("%s: %+v", name, in)
		}
		if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) != 1 {
			t.Errorf("%s: wrote %q", name, list)
		}
	}
}

// All parcels together are bounded; what is there stays whole.
func TestAllParcelsAreBounded(t *testing.T) {
	s := parcels.Shelf{Dir: filepath.Join(t.TempDir(), "parcels"), Room: 10, Needed: nobody}
	take := func(id, data string) error {
		_, err := s.Take(ctx, control.UploadCall{ID: id, Path: "x", Part: part, Data: []byte(data), Last: true})
		return err
	}
	if err := take("p1", "1234567"); err != nil {
		t.Fatal(err)
	}
	if err := take("p2", "1234"); err == nil || !strings.Contains(err.Error(), "10 bytes in total") {
		t.Errorf("beyond the bound: %v", err)
	}
	if err := take("p2", "123"); err != nil {
		t.Errorf("up to the bound: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(s.Dir, "in-p1", "x")); err != nil || string(b) != "1234567" {
		t.Errorf("the first one: %q, %v", b, err)
	}
}

// What a program still needs stays, also if another order brought it; the rest goes after a while.
func TestUploadsGoWhenNobodyNeedsThem(t *testing.T) {
	dir := t.TempDir()
	var needed []message.Program
	unknown := errors.New("the journal cannot be read")
	s := parcels.Shelf{Dir: dir, Needed: func() ([]message.Program, error) { return needed, unknown }}
	send := func(id string) message.RunInput {
		in, err := s.Take(ctx, control.UploadCall{ID: id, Path: "x", Part: part, Last: true})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	long := time.Now().Add(-2 * time.Hour)
	age := func(id string) {
		if err := os.Chtimes(filepath.Join(dir, "in-"+id), long, long); err != nil {
			t.Fatal(err)
		}
	}
	there := func(what string, want map[string]bool) {
		t.Helper()
		for id, want := range want {
			if _, err := os.Stat(filepath.Join(dir, "in-"+id)); err == nil != want {
				t.Errorf("%s: %s is there: %t, want %t", what, id, err == nil, want)
			}
		}
	}
	for _, id := range []string{"needed", "over", "fresh"} {
		in := send(id)
		if id == "needed" {
			needed = []message.Program{{Inputs: []message.RunInput{in, {Source: "/elsewhere/x"}}}}
		}
		if id != "fresh" {
			age(id)
		}
	}
	send("next")
	there("nobody knows", map[string]bool{"needed": true, "over": true, "fresh": true, "next": true})
	unknown = nil
	send("next2")
	there("all is known", map[string]bool{"needed": true, "over": false, "fresh": true, "next": true, "next2": true})
}

// An upload that takes long is not cleared away by another one.
func TestALongUploadStays(t *testing.T) {
	dir := t.TempDir()
	s := parcels.Shelf{Dir: dir, Needed: nobody}
	for i := range 3 {
		q := control.UploadCall{ID: "slow", Path: "x", Part: part, At: int64(i), Data: []byte("x"), Last: i == 2}
		if _, err := s.Take(ctx, q); err != nil {
			t.Fatalf("piece %d: %v", i, err)
		}
		if _, err := s.Take(ctx, control.UploadCall{ID: "other", Path: "x", Part: part, Last: true}); err != nil {
			t.Fatal(err)
		}
		if long := time.Now().Add(-2 * time.Hour); i == 0 {
			if err := os.Chtimes(filepath.Join(dir, "in-slow"), long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An agent may have been started in another directory when it opens the file.
func TestAnUploadHasAnAbsolutePath(t *testing.T) {
	t.Chdir(t.TempDir())
	s := parcels.Shelf{Dir: "parcels", Needed: nobody}
	if in, err := s.Take(ctx, control.UploadCall{ID: "p1", Path: "x", Part: part, Last: true}); err != nil || !filepath.IsAbs(in.Source) {
		t.Errorf("%q, %v", in.Source, err)
	}
}

// A disk that is full, here a directory that is none, is reported with what to do.
func TestAFileThatCannotBeKeptIsReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := parcels.Shelf{Dir: dir, Needed: nobody, Run: func(context.Context, control.RunCall) (message.Run, error) {
		return message.Run{ID: "p1", Units: []message.RunUnit{{Resource: "atlas", Status: message.LaunchStatus{Keep: time.Now().Add(time.Hour), Outputs: []protocol.StagedFile{{Path: "x"}}}}}}, nil
	}, Open: func(context.Context, protocol.AgentID) (stage.Stream, error) { return nil, errors.New("not reached") }}
	_, taken := s.Take(ctx, control.UploadCall{ID: "p1", Path: "x", Part: part, Last: true})
	sent := s.Send(ctx, control.RunFileCall{ID: "p1", Unit: 1, Path: "x"}, func(control.FilePiece) error { return nil })
	for _, err := range []error{taken, sent} {
		if _, hint := exit.Of(err); err == nil || !strings.Contains(hint, "make room") {
			t.Errorf("%v (%s)", err, hint)
		}
	}
	s.Dir = t.TempDir()
	for name, q := range map[string]control.RunFileCall{
		"no such unit": {ID: "p1", Unit: 2, Path: "x"}, "no such file": {ID: "p1", Unit: 1, Path: "../x"}, "a site that does not answer": {ID: "p1", Unit: 1, Path: "x"},
	} {
		if err := s.Send(ctx, q, func(control.FilePiece) error { return errors.New("sent") }); err == nil || err.Error() == "sent" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(s.Dir); len(left) > 0 {
		t.Errorf("copies stay: %v", left)
	}
}
