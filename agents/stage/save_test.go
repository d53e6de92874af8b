package stage_test

import (
	"log/slog"
	"os"
	"path/filepath"
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
