package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A keeper measures its job periodically, and saves the usage so far: it answers
// queries while the job runs, and counts if the machine dies.
const (
	usageFile = "usage.json" // in a job's control directory
	// samplePeriod is the time between two measurements.
	samplePeriod = time.Second
	// shareWindow is the number of measurements over which other processes are
	// averaged: a short-lived process takes no share.
	shareWindow = 10
	// tick is the unit of /proc/PID/stat: hundredths of a second on every Linux machine.
	tick = 10 * time.Millisecond
)

// reading is the usage that a keeper has measured so far.
type reading struct {
	Usage  protocol.Usage `json:"usage"`
	Memory int64          `json:"memory"`
}

// readUsage adds the measured usage to a job's status.
func readUsage(job message.Job, s *protocol.JobStatus) error {
	var r reading
	if err := queue.ReadFile(control(job, usageFile), &r); err != nil {
		return err
	}
	s.Usage, s.Memory = r.Usage, r.Memory
	return nil
}

func writeUsage(job message.Job, r reading) error {
	path := control(job, usageFile)
	text := fmt.Appendf(nil, `{"usage":{"cpu":%d,"wall":%d,"share":%d},"memory":%d}`, r.Usage.CPU, r.Usage.Wall, r.Usage.Share, r.Memory)
	return renameio.WriteFile(path, text, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// life identifies a process: the kernel reuses numbers, but with another start.
type life struct {
	pid     int
	started uint64
}

// meter sums up the usage of a job's processes, and the share of the machine that others leave it.
type meter struct {
	cores  int // of the job
	cpu    time.Duration
	memory int64
	share  int64 // least so far, in micro-cores
	seen   map[life]time.Duration
	gone   time.Duration // of processes that have disappeared
	others []int         // runnable processes outside the job, at the last measurements
}

func newMeter(cores int) *meter {
	return &meter{cores: cores, share: int64(cores) * protocol.Core, seen: map[life]time.Duration{}}
}

// sight is one measurement of the machine.
type sight struct {
	own      map[int]process // of the job, without its keeper
	runnable int             // runnable threads outside the job; -1: not counted
	waited   time.Duration   // of children that the keeper has waited for
}

func (m *meter) look(s sight) {
	now, live, resident := map[life]time.Duration{}, s.waited, int64(0)
	for pid, p := range s.own {
		now[life{pid, p.started}] = p.cpu
		live += p.cpu + p.waited
		resident += p.resident
	}
	for l, cpu := range m.seen {
		if _, still := now[l]; !still {
			m.gone += cpu
		}
	}
	m.seen = now
	m.used(live)
	m.memory = max(m.memory, resident)
	if s.runnable >= 0 {
		m.shared(runtime.NumCPU(), s.runnable)
	}
}

// used sums up the living processes and their waited-for children. It counts every
// process that was seen, whether anybody waited for it or not.
func (m *meter) used(live time.Duration) {
	sum := m.gone
	for _, cpu := range m.seen {
		sum += cpu
	}
	m.cpu = max(m.cpu, sum, live)
}

// shared notes how many threads of others were runnable on so many cores. A machine that
// shares fairly gives the job's share to as many of its threads as it has cores, if
// they are always runnable (001).
func (m *meter) shared(machine, others int) {
	m.others = append(m.others, others)
	if len(m.others) > shareWindow {
		m.others = m.others[1:]
	}
	sum := 0
	for _, n := range m.others {
		sum += n
	}
	m.share = min(m.share, fairShare(m.cores, machine, sum, len(m.others)))
}

// fairShare is what a machine leaves to as many threads as a job has cores, in
// micro-cores, if sum/looks others are runnable on average.
func fairShare(cores, machine, sum, looks int) int64 {
	full := int64(cores) * protocol.Core
	wanted := int64(cores*looks + sum) // threads, times looks
	return min(full, full*int64(machine*looks)/wanted)
}

func family(all map[int]process, root int) map[int]bool {
	list := map[int]bool{root: true}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if list[p.parent] && !list[pid] {
				list[pid], grown = true, true
			}
		}
	}
	return list
}

// observe measures the descendants of this process, and counts the runnable threads of
// others on request. It first reads the waited-for children, and then skips processes
// that are gone: so nothing counts twice, and the next measurement adds the rest.
func observe(others bool) sight {
	s := sight{own: map[int]process{}, runnable: -1}
	s.waited, _ = waitedFor()
	self, all := os.Getpid(), processes()
	running := threadsRunning(self)
	for pid := range family(all, self) {
		p := all[pid]
		if q, ok := readProcess(pid); pid != self && ok && q.started == p.started {
			s.own[pid] = p
			running += threadsRunning(pid)
		}
	}
	if n, ok := runnableNow(); ok && others {
		s.runnable = max(n-running, 0)
	}
	return s
}

// maxThreads bounds the threads of one process that are counted.
const maxThreads = 1 << 12

// threadsRunning counts the runnable threads of a process.
func threadsRunning(pid int) int {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0
	}
	defer dir.Close() //nolint:errcheck // only read
	names, _ := dir.Readdirnames(maxThreads)
	n := 0
	for _, name := range names {
		b, _ := os.ReadFile(dir.Name() + "/" + name + "/stat") // it may be gone
		if p, ok := parseStat(b); ok && p.running {
			n++
		}
	}
	return n
}

// runnableNow counts the runnable threads of the machine.
func runnableNow() (int, bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	_, rest, _ := bytes.Cut(b, []byte("\nprocs_running "))
	word, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(word))
	return n, err == nil
}

// waitedFor is the CPU time of the descendants that this process has waited for,
// and the largest memory of one of them.
func waitedFor() (time.Duration, int64) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), r.Maxrss << 10
}

// sample measures the job, and saves a changed reading. A suspended job has no share of
// the machine to lose.
func (k *keeper) sample(now time.Time) error {
	k.meter.look(observe(k.paused.IsZero()))
	r := reading{k.usage(now), k.meter.memory}
	if r == k.last {
		return nil
	}
	k.last = r
	return writeUsage(k.job, r)
}

// usage is the job's usage until an instant; a suspended job uses nothing.
func (k *keeper) usage(now time.Time) protocol.Usage {
	return protocol.Usage{CPU: k.meter.cpu, Wall: max(now.Sub(k.status.Started)-k.idleUntil(now), 0), Share: k.meter.share}
}

// final is the usage of the whole job, once all its processes are gone.
func (k *keeper) final() (protocol.Usage, int64) {
	waited, most := waitedFor()
	k.meter.look(sight{runnable: -1, waited: waited})
	return k.usage(k.status.Ended), max(most, k.meter.memory)
}

// Fields of /proc/PID/stat behind the name, from 0.
const (
	fieldState   = 0
	fieldParent  = 1
	fieldUser    = 11
	fieldSystem  = 12
	fieldWaitedU = 13
	fieldWaitedS = 14
	fieldStarted = 19
	fieldPages   = 21
	statFields   = 22
)

// parseStat reads /proc/PID/stat: pid (name) state parent … where the name may
// have spaces and parentheses.
func parseStat(b []byte) (process, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return process{}, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < statFields {
		return process{}, false
	}
	parent, err := strconv.Atoi(f[fieldParent])
	if err != nil {
		return process{}, false
	}
	started, err := strconv.ParseUint(f[fieldStarted], 10, 64)
	state := f[fieldState]
	return process{
		parent: parent, dead: state == "Z" || state == "X", running: state == "R", started: started,
		cpu: ticks(f[fieldUser]) + ticks(f[fieldSystem]), waited: ticks(f[fieldWaitedU]) + ticks(f[fieldWaitedS]),
		resident: pages(f[fieldPages]),
	}, err == nil
}

// ticks reads a time of /proc; malformed text counts as 0.
func ticks(s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 48)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * tick
}

// pages converts a size of /proc to bytes.
func pages(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 40)
	if err != nil || n < 0 {
		return 0
	}
	return n * int64(os.Getpagesize())
}
