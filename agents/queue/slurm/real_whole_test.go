package slurm_test

import (
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Trap: Slurm reserves cores wherever they are free: beside half a node, the cores of two
// nodes are on three. 26.05 begins with a core of every node.
func TestWholeNodesAreWhole(t *testing.T) {
	c := real(t)
	ask, _ := begin(t, config(c))
	now := time.Now()
	slot := func(cores, nodes int) protocol.Slot {
		return protocol.Slot{Start: now, End: now.Add(10 * time.Minute), Cores: cores, Nodes: nodes}
	}
	half := grant(t, ask, "half", slot(c.Cores/2, 0))
	cores := grant(t, ask, "cores", slot(2*c.Cores, 0))
	if on := must(t, c, "scontrol", "-o", "show", "reservation", cores.Batch); !strings.Contains(on, "NodeCnt=3") {
		t.Logf("the trap is gone: %s", on)
	}
	if r := ask(message.Reserve{ID: "nodes", Slot: slot(2*c.Cores, 2)}).(message.Reserved); r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free > c.Cores {
		t.Fatalf("two nodes beside two and a half of four, scattered: OK %v, %+v", r.OK, r.Reason)
	}
	if on := must(t, c, "scontrol", "-o", "show", "reservation", half.Batch); !strings.Contains(on, "NodeCnt=1 ") {
		if t.Logf("half a node is on several: %s", on); !since(t, c, "25.05") {
			t.Fatal("before 26.05 it was not")
		}
		if r := ask(message.Release{ID: "half"}).(message.Released); !r.OK {
			t.Fatalf("%+v", r)
		}
		half.Slot.Cores = 0
	}
	if r := ask(message.Release{ID: "cores"}).(message.Released); !r.OK {
		t.Fatalf("%+v", r)
	}
	r := grant(t, ask, "nodes", slot(2*c.Cores, 2))
	if r.Slot.Nodes != 2 || r.Slot.Cores != 2*c.Cores {
		t.Fatalf("granted %+v", r.Slot)
	}
	number := must(t, c, "sbatch", "--parsable", "--reservation="+r.Batch, "-n", "32", "-t5", "-o/dev/null", "--wrap", "sleep 60")
	awaitRunning(t, c, number)
	if job := must(t, c, "scontrol", "-o", "show", "job", number); !strings.Contains(job, "NumNodes=2 NumCPUs=32") {
		t.Fatalf("the job has not two whole nodes: %s", job)
	}
	if r := ask(message.Reserve{ID: "rest", Slot: slot(2*c.Cores, 2)}).(message.Reserved); half.Slot.Cores == 0 && r.OK {
		return
	} else if r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free != c.Cores {
		t.Fatalf("two more nodes where one is idle: OK %v, %+v", r.OK, r.Reason)
	}
}
