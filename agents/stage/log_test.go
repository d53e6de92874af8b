package stage_test

import (
	"bytes"
	"errors"
	"io"
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

// Of a job whose usage can still be disputed the head of what it prints is delivered, and
// the rest when the usage is decided, to a follower as well.
func TestTheHeadOfALogComesBeforeTheUsageIsDecided(t *testing.T) {
	p := newPlace(t)
	const head = 64 << 10
	out := strings.Repeat("a result\n", head/4)
	write(t, filepath.Join(p.root, "j1", "stdout"), out)
	p.grant.Over, p.grant.Head = true, true
	var stdout bytes.Buffer
	var at, errAt int64
	read := func(follow bool) error {
		s, end := p.link(ann, 0, 0)
		defer func() { _ = end() }()
		return stage.Log(s, key, &at, &errAt, follow, &stdout, &stdout)
	}
	if err := read(false); !errors.Is(err, stage.ErrKept) || stdout.String() != out[:head] {
		t.Fatalf("%d bytes, %v; want the first %d", stdout.Len(), err, head)
	}
	p.grant.Head = false
	if err := read(true); err != nil || stdout.String() != out {
		t.Fatalf("%d bytes, %v; want %d", stdout.Len(), err, len(out))
	}
}

// Every refused request is charged to whoever made it, and the exchange ends when that is
// too much.
func TestRefusedRequestsAreCharged(t *testing.T) {
	p := newPlace(t)
	p.bound = 3
	s, end := p.link(ann, 0, 0)
	refused := 0
	for range 10 {
		var at, errAt int64 = -1, 0
		var no *stage.Refusal
		if !errors.As(stage.Log(s, key, &at, &errAt, false, io.Discard, io.Discard), &no) {
			break
		}
		refused++
	}
	if err := end(); refused != 4 || p.wrong.Load() != 4 || err == nil {
		t.Fatalf("%d refused, %d charged, and the exchange: %v", refused, p.wrong.Load(), err)
	}
}
