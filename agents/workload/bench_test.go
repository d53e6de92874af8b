package workload_test

import (
	"bytes"
	"sync"
	"testing"

	"ramp/agents/workload"
)

// large is a log of 450,000 jobs on a busy machine of 8,192 cores, as text.
var large = sync.OnceValue(func() []byte {
	m := workload.Typeless()
	l := &workload.Log{Comments: []string{" MaxProcs: 8192"}}
	r := chance(1)
	at := int64(0)
	for i := range 450_000 {
		cores := min(m.DrawCores(r, 8192), 256)
		run := m.DrawRun(r, cores)
		at += r.Int64N(60)
		l.Jobs = append(l.Jobs, workload.Job{
			Number: int32(i + 1), Submit: at, Wait: r.Int32N(600), Run: run, Procs: int32(cores),
			CPU: -1, Memory: -1, RequestedProcs: int32(cores), RequestedTime: 2 * run, RequestedMem: -1, Status: 1,
		})
	}
	var b bytes.Buffer
	if err := workload.WriteSWF(&b, l); err != nil {
		panic(err)
	}
	return b.Bytes()
})

func BenchmarkReadSWF450000(b *testing.B) {
	text := large()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := workload.ReadSWF(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLog450000(b *testing.B) {
	l, err := workload.ReadSWF(bytes.NewReader(large()))
	if err != nil {
		b.Fatal(err)
	}
	v := workload.NewView(l)
	_, end := v.Span()
	r := chance(2)
	b.Run("NewView", func(b *testing.B) {
		for b.Loop() {
			workload.NewView(l)
		}
	})
	b.Run("MostBusy", func(b *testing.B) {
		for b.Loop() {
			start := r.Int64N(end)
			v.MostBusy(start, start+r.Int64N(end))
		}
	})
	b.Run("Load", func(b *testing.B) {
		for b.Loop() {
			start := r.Int64N(end)
			v.Load(start, start+604800)
		}
	})
	b.Run("NewMachine", func(b *testing.B) {
		for b.Loop() {
			workload.NewMachine(l, end/3)
		}
	})
	m := workload.NewMachine(l, end/3)
	m.Advance(end/3 + 3600)
	b.Run("Project", func(b *testing.B) {
		for b.Loop() {
			m.Snapshot().Project()
		}
	})
	b.Run("AdvanceToNext", func(b *testing.B) {
		for b.Loop() {
			next, ok := m.Next()
			if !ok {
				m = workload.NewMachine(l, end/3)
			}
			m.Advance(next)
		}
	})
}
