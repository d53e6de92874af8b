package slurm_test

import (
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// What a buyer submits into his slot himself is measured by a Slurm that keeps no
// accounts, also when it ended before the agent began anew; a job beside the slot is not.
func TestWhatABuyerSubmitsHimselfIsMeasured(t *testing.T) {
	c := real(t)
	cfg := config(c)
	cfg.Dir = t.TempDir()
	ask, stop := open(t, cfg)
	start := time.Now().UTC().Truncate(time.Second)
	r := ask(message.Reserve{ID: "own", Slot: protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 4}}).(message.Reserved)
	if !r.OK {
		t.Fatalf("refused: %+v", r.Reason)
	}
	must(t, c, "sbatch", "--reservation="+r.Batch, "-n2", "-o/dev/null", "--wrap", "sleep 2")
	must(t, c, "sbatch", "-n8", "-o/dev/null", "--wrap", "sleep 4")
	for must(t, c, "squeue", "-h", "-o", "%i") != "" { // it takes as long as it takes
		time.Sleep(100 * time.Millisecond)
	}
	so := func(ask func(protocol.Body) protocol.Body) message.SlotUsed {
		// As if the slot ended now; a fresh look of the driver shows it to be so.
		end := time.Now().UTC().Truncate(time.Second)
		return ask(message.SlotQuery{ID: "own", Slot: protocol.Slot{Start: start, End: end, Cores: 4}}).(message.SlotUsed)
	}
	first := so(ask)
	if u := first.Status.Usage; first.Measured != protocol.MeasuredJobs || u.Wall < time.Second || u.CPU != 2*u.Wall || u.Share != 4*protocol.Core {
		t.Fatalf("two cores for two seconds: %+v", first)
	}
	stop()
	must(t, c, "scontrol", "delete", "ReservationName="+r.Batch)
	ask, _ = open(t, cfg)
	if again := so(ask); again.Status.Usage != first.Status.Usage {
		t.Errorf("asked again: %+v, at first %+v", again, first)
	}
}
