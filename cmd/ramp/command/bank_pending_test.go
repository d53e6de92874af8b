package command

import (
	"fmt"
	"net/http"
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

// A note of entries that the ledger does not have is of one that was lost: what is
// ordered now stands behind the last entry of the one that was restored.
func TestANoteOfALostLedgerIsWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	last := 120
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/last", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"entry":%d}`, last) })
	note := func() *pendingAct {
		p, err := noteAct(t.Context(), localCaller(mux), dir, "/v1/credit", "the order")
		if err != nil {
			t.Fatal(err)
		}
		defer p.close(false)
		return p
	}
	for _, step := range []struct {
		last         int
		after, there uint64
	}{
		{120, 120, 0}, // noted, and given without an answer
		{121, 120, 121},
		{50, 50, 0}, // restored: what was ordered is lost
		{51, 50, 51},
	} {
		last = step.last
		if p := note(); p.after != step.after || p.there != step.there {
			t.Errorf("with %d entries: after %d, of %d; want %d, %d", last, p.after, p.there, step.after, step.there)
		}
	}
}
