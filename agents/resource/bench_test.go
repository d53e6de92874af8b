package resource_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/agents/workload"
	"ramp/protocol"
	"ramp/protocol/message"
)

// longLog has 400,000 jobs; at base some 900 of them run on 16,384 cores and
// 3,000 wait.
func longLog(base int64) *workload.Log {
	rng := mathrand.New(mathrand.NewPCG(1, 2))
	log := &workload.Log{Comments: []string{" MaxProcs: 16384"}, Jobs: make([]workload.Job, 0, 400_000)}
	add := func(submit int64, wait, run int32) {
		log.Jobs = append(log.Jobs, workload.Job{
			Number: int32(len(log.Jobs) + 1), Submit: submit, Wait: wait, Run: run, Procs: 1 + rng.Int32N(36),
			RequestedProcs: workload.Unknown, RequestedTime: run + rng.Int32N(7200), Status: workload.StatusCompleted,
		})
	}
	for i := range int64(198_100) {
		add(i*60, 0, 1+rng.Int32N(600)) // over before the base
	}
	for range 900 {
		add(base-3600, 0, 3600+1+rng.Int32N(36000))
	}
	for i := range int64(3000) {
		add(base-3000+i, 100_000, 60+rng.Int32N(36000))
	}
	for i := range int64(198_000) {
		add(base+1+i*60, 0, 1+rng.Int32N(36000))
	}
	return log
}

// stateOf is a machine's state as a driver tells it that plays its queue forward.
func stateOf(m *workload.Machine, now time.Time) message.QueueChanged {
	snap := m.Snapshot()
	q := message.QueueChanged{At: now, Capacity: snap.Capacity}
	for step := range snap.Project().Steps(snap.Now, workload.Forever) {
		q.Foreseen = append(q.Foreseen, protocol.Span{Start: now.Add(time.Duration(step.At-snap.Now) * time.Second), Cores: step.Free})
	}
	return q
}

const longBase = 198_100*60 + 10_000

// One seller answers a call of round 1 over a log of 400,000 jobs: with the
// calendar at hand, and as the first call after the batch system changed, when
// the queue is played forward anew.
func BenchmarkCall(b *testing.B) {
	a := newAgents(b, "ann", "atlas", "bank")
	cfg := a.config()
	cfg.Properties.Cores = 16384
	machine := workload.NewMachine(longLog(longBase), longBase)
	state := stateOf(machine, noon)
	role, _, err := resource.New(cfg, store{}, noon)
	must(b, err)
	changed := protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Body: state}
	role.Receive(noon, changed)
	for _, changes := range []bool{false, true} {
		b.Run("changed="+strconv.FormatBool(changes), func(b *testing.B) {
			document := document(4096, noon.Add(time.Hour), noon.Add(48*time.Hour))
			n := 0
			for b.Loop() {
				n++
				if changes {
					role.Receive(noon, changed)
				}
				call := message.CallForProposals{Round: 1, Document: document, Terms: cfg.Terms, Modes: []protocol.Mode{protocol.ModeOnReservation}}
				out := role.Receive(noon, protocol.Message{Performative: protocol.CFP, Sender: a.id("ann"), Conversation: fmt.Sprint(n), Body: call})
				if out.Send[0].Performative != protocol.Propose {
					b.Fatalf("answer %+v", out.Send[0].Body)
				}
			}
		})
	}
}

// What a seller keeps in memory of a log of 400,000 jobs, in megabytes.
func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		machine := workload.NewMachine(longLog(longBase), longBase)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
		runtime.KeepAlive(machine)
	}
}
