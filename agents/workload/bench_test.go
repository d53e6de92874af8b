package workload_test

import (
	"bytes"
	"os"
	"path/filepath"
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
	benchmarkLog(b, l)
}

// BenchmarkRealLogs does the same with real logs, which are not part of the
// project: RAMP_LOGS=DIR go test -bench RealLogs
func BenchmarkRealLogs(b *testing.B) {
	dir := os.Getenv("RAMP_LOGS")
	if dir == "" {
		b.Skip("RAMP_LOGS does not name a directory of *.swf.gz")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.swf.gz"))
	if err != nil || len(files) == 0 {
		b.Fatalf("no *.swf.gz in %s: %v", dir, err)
	}
	for _, path := range files {
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.Run("Read", func(b *testing.B) {
				for b.Loop() {
					readFile(b, path)
				}
			})
			benchmarkLog(b, readFile(b, path))
		})
	}
}

func readFile(b *testing.B, path string) *workload.Log {
	packed, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	plain, err := workload.Plain(bytes.NewReader(packed))
	if err != nil {
		b.Fatal(err)
	}
	l, err := workload.ReadSWF(plain)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// benchmarkLog asks a log of a busy machine all that a market asks. Slots are of
// all sizes, up to a day long, in the whole of the log (the oracle's view) or in
// the three days to come (the scheduler's).
func benchmarkLog(b *testing.B, l *workload.Log) {
	v := workload.NewView(l)
	first, end := v.Span()
	base := first + (end-first)/3
	r := chance(2)
	b.Run("NewView", func(b *testing.B) {
		for b.Loop() {
			workload.NewView(l)
		}
	})
	b.Run("SlotSeen", func(b *testing.B) {
		for b.Loop() {
			start := first + r.Int64N(end-first)
			v.MostBusy(start, start+1+r.Int64N(86400))
		}
	})
	b.Run("LoadOfAnySpan", func(b *testing.B) {
		for b.Loop() {
			start := first + r.Int64N(end-first)
			v.Load(start, start+1+r.Int64N(end-first))
		}
	})
	b.Run("Summarise", func(b *testing.B) {
		for b.Loop() {
			workload.Summarise(l)
		}
	})
	replay := workload.NewReplay(l)
	b.Run("NewReplay", func(b *testing.B) {
		for b.Loop() {
			workload.NewReplay(l)
		}
	})
	b.Run("MachineAtAnyBase", func(b *testing.B) {
		for b.Loop() {
			replay.Machine(first + r.Int64N(end-first))
		}
	})
	benchmarkMachine(b, replay, base)
}

func benchmarkMachine(b *testing.B, replay *workload.Replay, base int64) {
	m, r := replay.Machine(base), chance(3)
	m.Advance(base + 3600)
	b.Run("Project", func(b *testing.B) {
		for b.Loop() {
			m.Snapshot().Project()
		}
	})
	plan := m.Snapshot().Project()
	b.Run("SlotForeseen", func(b *testing.B) {
		for b.Loop() {
			start := m.Now() + r.Int64N(3*86400)
			plan.Free(start, start+1+r.Int64N(86400))
		}
	})
	b.Run("EarliestSlot", func(b *testing.B) {
		for b.Loop() {
			plan.Earliest(m.Now(), workload.Forever, 1+r.Int64N(86400), 1+r.IntN(m.Capacity()))
		}
	})
	b.Run("AdvanceToNext", func(b *testing.B) {
		for b.Loop() {
			if _, ok := m.Next(); !ok {
				m = replay.Machine(base)
			}
			next, _ := m.Next()
			m.Advance(next)
		}
	})
}
