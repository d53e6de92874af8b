package script_test

import (
	"testing"
	"time"

	"ramp/agents/queue/script"
	"ramp/protocol"
	"ramp/protocol/message"
)

// What its owner killed before it began, and the batch system has dropped, is not
// unknown: that would have it submitted again.
func TestAJobThatWasKilledBeforeItBegan(t *testing.T) {
	job := message.Job{ID: "j", Dir: t.TempDir(), Argv: []string{"true"}, Slot: protocol.Slot{Start: time.Now(), End: time.Now().Add(time.Hour), Cores: 1}}
	w := script.NewWatch("the batch system", time.Second, time.Second)
	none := func([]message.Job) (map[string]script.Stand, error) { return nil, nil }
	if _, known, why := w.Prepare(time.Now(), job, none); known || why != nil {
		t.Fatalf("known %v, %+v", known, why)
	}
	if err := script.Unwanted(time.Now(), job); err != nil {
		t.Fatal(err)
	}
	if _, known, why := w.Prepare(time.Now(), job, none); !known || why != nil {
		t.Fatalf("it is submitted again: known %v, %+v", known, why)
	}
	all, err := w.Statuses(time.Now(), []message.Job{job}, none)
	if err != nil || all["j"].State != protocol.JobKilled {
		t.Fatalf("%+v, %v", all, err)
	}
}
