package command

import (
	"os"
	"path/filepath"
	"testing"
)

// A command that comes while another gives the same order gives a second one.
func TestANoteIsOneCommands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note")
	first, err := lockNote(path)
	if err != nil || first == nil {
		t.Fatalf("%v, %v", first, err)
	}
	if second, err := lockNote(path); err != nil || second != nil {
		t.Fatalf("the second has %v, %v while the first is at it", second, err)
	}
	(&pendingAct{file: first}).close(true)
	third, err := lockNote(path)
	if err != nil || third == nil {
		t.Fatalf("after the answer: %v, %v", third, err)
	}
	_ = third.Close()
}

// Who opened a note before it was answered and removed must not take it for its own.
func TestANoteThatWasAnsweredIsNobodys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note")
	first, err := lockNote(path)
	if err != nil {
		t.Fatal(err)
	}
	late, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Close() }()
	if !current(late) {
		t.Error("the note is at its path, and is not current")
	}
	(&pendingAct{file: first}).close(true)
	if current(late) {
		t.Error("the note is removed, and still current")
	}
	second, err := lockNote(path)
	if err != nil || second == nil {
		t.Fatalf("%v, %v", second, err)
	}
	defer func() { _ = second.Close() }()
	if current(late) || !current(second) {
		t.Error("the old note is taken for the new one")
	}
}
