package stage_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"ramp/agents/stage"
)

// What a job prints is read from where it was left, across lines that break.
func TestLogIsReadAcrossBreaks(t *testing.T) {
	p := newPlace(t)
	out, errs := strings.Repeat("to be read\n", 60_000), "an error\n"
	write(t, filepath.Join(p.root, "j1", "stdout"), out)
	write(t, filepath.Join(p.root, "j1", "stderr"), errs)
	p.grant.Over = true
	var stdout, stderr bytes.Buffer
	var at, errAt int64
	for n := 0; ; n++ {
		s, end := p.link(ann, 1000, 300_000*(n+1)/2)
		err := stage.Log(s, key, &at, &errAt, true, &stdout, &stderr)
		_ = end()
		if err == nil {
			break
		}
		if n > 20 {
			t.Fatalf("it never ends: %v", err)
		}
	}
	if stdout.String() != out || stderr.String() != errs || at != int64(len(out)) || errAt != int64(len(errs)) {
		t.Fatalf("read %d and %d bytes, at %d and %d; want %d and %d", stdout.Len(), stderr.Len(), at, errAt, len(out), len(errs))
	}
}

// A job that has printed nothing has an empty log, also one that is not over.
func TestLogOfNothing(t *testing.T) {
	p := newPlace(t)
	for _, over := range []bool{true, false} {
		p.grant.Over = over
		s, end := p.link(ann, 0, 0)
		var stdout bytes.Buffer
		var at, errAt int64
		if err := stage.Log(s, key, &at, &errAt, over, &stdout, &stdout); err != nil || stdout.Len() > 0 {
			t.Fatalf("%q, %v", stdout.String(), err)
		}
		_ = end()
	}
}
