package slurm_test

import (
	"fmt"
	"strings"
	"testing"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Why slots are not sold over running jobs on Slurm: in 22.05 a reservation that ignores
// jobs takes the first cores by number, those of a job that runs until after it, while
// three nodes are idle. So it would break what a plain one keeps. 24.11 does not.
func TestAReservationThatIgnoresJobsTakesCoresOfThose(t *testing.T) {
	c := real(t)
	must(t, c, "sbatch", "-w", "node1", "-n", "16", "-N", "1", "--time=600", "-o", "/dev/null", "--wrap", "sleep 600")
	ask, states := begin(t, config(c))
	awaitState(t, states, "a running job", func(q message.QueueChanged) bool { return len(q.Running) == 1 && q.Running[0].Cores == 16 })
	slot := ahead(2, 1, 4)
	node := func(flags ...string) string {
		args := append([]string{"create", "reservation", "ReservationName=over", "PartitionName=batch", fmt.Sprintf("CoreCnt=%d", slot.Cores),
			"StartTime=" + stamp(slot.Start), "EndTime=" + stamp(slot.End), "Users=root"}, flags...)
		must(t, c, "scontrol", args...)
		on := must(t, c, "scontrol", "-o", "show", "reservation", "over")
		must(t, c, "scontrol", "delete", "ReservationName=over")
		return on
	}
	if on := node("Flags=IGNORE_JOBS"); !strings.Contains(on, " Nodes=node1 ") && !since(t, c, "23.02") {
		t.Errorf("a reservation that ignores jobs lies beside them: %s", on)
	}
	if on := node(); strings.Contains(on, " Nodes=node1 ") {
		t.Errorf("a plain reservation lies over a running job: %s", on)
	}
	over := ask(message.Reserve{ID: "r-over", Slot: slot, Over: true}).(message.Reserved)
	if over.OK || over.Reason.Code != protocol.CodeForbidden {
		t.Errorf("asked to reserve over jobs the driver answers %+v, want forbidden", over)
	}
}
