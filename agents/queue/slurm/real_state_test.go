package slurm_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/slurm"
	"ramp/agents/queue/slurm/slurmtest"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestWaitingJobsAreToldInTheirTurn(t *testing.T) {
	c := real(t)
	_, states := begin(t, config(c))
	awaitRunning(t, c, must(t, c, "sbatch", "--parsable", "-n64", "-t60", "-o/dev/null", "--wrap", "sleep 300"))
	must(t, c, "sbatch", "-n7", "-t20", "-o/dev/null", "--wrap", "true")
	must(t, c, "sbatch", "-n3", "-t10", "--array=1-4", "-o/dev/null", "--wrap", "true")
	must(t, c, "sbatch", "-n9", "-t10", "--hold", "-o/dev/null", "--wrap", "true")
	must(t, c, "sbatch", "-n9", "-t10", "--begin=now+5hours", "-o/dev/null", "--wrap", "true")
	q := awaitState(t, states, "the queue", func(q message.QueueChanged) bool { return len(q.Queued) == 5 })
	want := []message.QueuedJob{{Cores: 7, Wall: 20 * time.Minute}}
	for range 4 {
		want = append(want, message.QueuedJob{Cores: 3, Wall: 10 * time.Minute})
	}
	if q.Queued[0].ID == "" || time.Since(q.Queued[0].Submitted).Abs() > time.Minute || q.Queued[1].ID == "" || q.Queued[2].ID != "" {
		t.Fatalf("the queue does not say which job is which: %+v", q.Queued)
	}
	for i := range q.Queued {
		q.Queued[i].ID, q.Queued[i].Submitted = "", time.Time{}
	}
	if !slices.Equal(q.Queued, want) {
		t.Fatalf("the queue is %v, want %v", q.Queued, want)
	}
}

// A name is data: nothing in it reaches a shell or Slurm's own syntax.
func TestNamesOfAnyKind(t *testing.T) {
	c := real(t)
	ask, states := begin(t, config(c))
	ids := []string{"with a space", `"quoted"`, "new\nline", ";$(touch /tmp/x)`x`", "a,b=c", "--help", "ä☃", strings.Repeat("x", queue.MaxID)}
	slot := ahead(3, 1, 1)
	for _, id := range ids {
		grant(t, ask, id, slot)
	}
	q := awaitState(t, states, "all", func(q message.QueueChanged) bool { return len(q.Reservations) == len(ids) })
	for _, id := range ids {
		if !listed(q, id) {
			t.Errorf("%q is not listed", id)
		}
		if r := ask(message.Release{ID: id}).(message.Released); !r.OK {
			t.Errorf("%q: %+v", id, r.Reason)
		}
	}
}

func TestSurvey(t *testing.T) {
	list, err := slurm.Survey(config(real(t)))
	want := slurm.Partition{Name: "batch", Nodes: 4, Cores: 64, NodeCores: 16, RAMPerCore: 4000, Alike: true, NodeNames: []string{"node1", "node2", "node3", "node4"}, Features: []string{}, Longest: 7 * 24 * time.Hour}
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	want.Arch, want.OS = list[0].Arch, list[0].OS
	if !reflect.DeepEqual(list[0], want) || want.Arch == "" {
		t.Fatalf("%+v, want %+v", list[0], want)
	}
}

// Trap: Slurm reserves for longer than a job may last, and in a partition that is down.
func TestAPartitionsOwnRulesAreTold(t *testing.T) {
	c := real(t)
	rule := func(words ...string) {
		t.Helper()
		must(t, c, "scontrol", append([]string{"update", "PartitionName=batch"}, words...)...)
	}
	t.Cleanup(func() { rule("MaxTime=7-0", "State=UP") })
	ask, states := begin(t, config(c))
	awaitState(t, states, "a week", func(q message.QueueChanged) bool { return q.Longest == 7*24*time.Hour })
	rule("MaxTime=10")
	awaitState(t, states, "ten minutes", func(q message.QueueChanged) bool { return q.Longest == 10*time.Minute })
	grant(t, ask, "r-1", ahead(3, 1, 1))
	rule("State=DOWN")
	grant(t, ask, "r-2", ahead(3, 1, 1))
	list, err := slurm.Survey(config(c))
	if err != nil || len(list) != 1 || !strings.Contains(list[0].Bars, "batch is DOWN") {
		t.Fatalf("%+v, %v; want that it is down", list, err)
	}
}

// Trap: Slurm reserves over more nodes than a job may have, and more CPUs of a node, and
// then refuses the job, or leaves it waiting.
func TestWhatNoJobCouldUseIsNotSold(t *testing.T) {
	c := real(t)
	rule := func(words ...string) {
		t.Helper()
		must(t, c, "scontrol", append([]string{"update", "PartitionName=batch"}, words...)...)
	}
	open := []string{"MinNodes=0", "MaxNodes=UNLIMITED", "MaxCPUsPerNode=UNLIMITED", "ExclusiveUser=NO", "MaxTime=7-0"}
	t.Cleanup(func() { rule(open...) })
	rule("MaxNodes=1")
	ask, _ := begin(t, config(c))
	kept := 1
	if r := ask(message.Reserve{ID: "r-1", Slot: ahead(3, 1, 8)}).(message.Reserved); !r.OK && since(t, c, "25.05") && strings.Contains(r.Reason.Note, "Slurm granted 8") {
		kept = 0 // 26.05 takes a core of every node first
	} else if !r.OK {
		t.Errorf("8 cores: %+v", r.Reason)
	}
	if r := ask(message.Reserve{ID: "r-2", Slot: ahead(5, 1, 32)}).(message.Reserved); r.OK || !strings.Contains(r.Reason.Note, "MaxNodes") {
		t.Errorf("32 cores, where a job may have one node of 16: OK %v, %+v", r.OK, r.Reason)
	}
	if left := must(t, c, "scontrol", "-o", "show", "reservation"); strings.Count(left, "ReservationName=") != kept {
		t.Errorf("what was given back is there: %s", left)
	}
	for _, says := range []string{"MaxCPUsPerNode=8", "ExclusiveUser=YES", "MinNodes=2", "MaxTime=0"} {
		rule(open...)
		rule(says)
		list, err := slurm.Survey(config(c))
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Bars, says[:7]) {
			t.Errorf("%s: %+v, %v", says, list, err)
		}
	}
}

// A node that is drained is no capacity.
func TestDrainedNodesAreNotForSale(t *testing.T) {
	c := real(t)
	cfg := config(c)
	cfg.PollMost = 5 * time.Second
	ask, states := begin(t, cfg)
	awaitState(t, states, "all nodes", func(q message.QueueChanged) bool { return q.Capacity == 64 })
	must(t, c, "scontrol", "update", "NodeName=node4", "State=DRAIN", "Reason=test")
	awaitState(t, states, "a node less", func(q message.QueueChanged) bool { return q.Capacity == 48 })
	must(t, c, "scontrol", "update", "NodeName=node[1-3]", "State=DRAIN", "Reason=test")
	if r := ask(message.Reserve{ID: "r-1", Slot: ahead(2, 1, 4)}).(message.Reserved); r.OK || r.Reason.Code != protocol.CodeUnavailable {
		t.Errorf("where every node is drained: OK %v, %+v", r.OK, r.Reason)
	}
	awaitState(t, states, "no node", func(q message.QueueChanged) bool { return q.Capacity == 0 })
	must(t, c, "scontrol", "update", "NodeName=node[1-4]", "State=RESUME")
	awaitState(t, states, "all nodes", func(q message.QueueChanged) bool { return q.Capacity == 64 })
}

// Slurm counts jobs in threads and reservations in cores; the market has cores.
func TestCoresWithSeveralThreads(t *testing.T) {
	real(t)
	dir, err := os.MkdirTemp("", "slurm") // accounts other than root can reach it
	if err != nil {
		t.Fatal(err)
	}
	c, err := slurmtest.Up(slurmtest.Options{Dir: dir, Nodes: 2, Cores: 8, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Down(); err != nil {
			t.Error(err)
		}
	}()
	ask, states := begin(t, config(c))
	awaitState(t, states, "16 cores", func(q message.QueueChanged) bool { return q.Capacity == 16 })
	awaitRunning(t, c, must(t, c, "sbatch", "--parsable", "-n6", "-t300", "-o/dev/null", "--wrap", "sleep 300"))
	awaitState(t, states, "3 cores taken", func(q message.QueueChanged) bool { return len(q.Running) == 1 && q.Running[0].Cores == 3 })
	slot := ahead(2, 1, 13)
	if r := grant(t, ask, "r-1", slot); r.Slot.Cores != 13 {
		t.Fatalf("granted %d cores", r.Slot.Cores)
	}
	slot.Cores = 1
	if r := ask(message.Reserve{ID: "r-2", Slot: slot}).(message.Reserved); r.OK || r.Reason.Free != 0 {
		t.Fatalf("a core too many: OK %v, %+v", r.OK, r.Reason)
	}
}

// The figure of docs/DRIVERS.md: how long a hold takes.
func TestHoldLatency(t *testing.T) {
	c := real(t)
	ask, _ := begin(t, config(c))
	const n = 60
	took := make([]time.Duration, n)
	for i := range took {
		begun := time.Now()
		grant(t, ask, fmt.Sprintf("r-%d", i), ahead(3, 1, 1))
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	t.Logf("%d holds: median %s, p95 %s, most %s", n, took[n/2].Round(time.Millisecond), took[n*95/100].Round(time.Millisecond), took[n-1].Round(time.Millisecond))
}
