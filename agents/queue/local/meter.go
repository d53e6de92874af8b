package local

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A keeper looks at its job now and then, and writes down what was used so far:
// whoever asks while the job runs is told that, and it is what counts if the
// machine goes down.
const (
	usageFile = "usage.json" // of a job's control directory; readings in it
	// samplePeriod is between two looks.
	samplePeriod = time.Second
	// shareWindow is over how many looks other processes are counted: one that
	// runs for a moment takes nobody's share.
	shareWindow = 10
	// tick is the unit of /proc/PID/stat: Linux tells it in hundredths of a second
	// on every machine.
	tick = 10 * time.Millisecond
)

// reading is what a keeper has measured so far.
type reading struct {
	Usage  protocol.Usage `json:"usage"`
	Memory int64          `json:"memory"`
}

// readUsage adds what was measured so far to how a job stands.
func readUsage(job message.Job, s *protocol.JobStatus) error {
	var r reading
	if err := queue.ReadFile(control(job, usageFile), &r); err != nil {
		return err
	}
	s.Usage, s.Memory = r.Usage, r.Memory
	return nil
}

// writeUsage replaces the reading. Nothing rests on the last one: it does not wait
// for the disk.
func writeUsage(job message.Job, r reading) error {
	path := control(job, usageFile)
	text := fmt.Appendf(nil, `{"usage":{"cpu":%d,"wall":%d,"share":%d},"memory":%d}`, r.Usage.CPU, r.Usage.Wall, r.Usage.Share, r.Memory)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// life names one process for ever: numbers come again, with another start.
type life struct {
	pid     int
	started uint64
}

// meter sums what the processes of a job use, and how much of the machine others
// leave it.
type meter struct {
	cores  int // of the job
	cpu    time.Duration
	memory int64
	share  int64 // least so far, in micro-cores
	seen   map[life]time.Duration
	gone   time.Duration // of what was seen, and is no more
	others []int         // runnable processes that are not the job's, at the last looks
}

func newMeter(cores int) *meter {
	return &meter{cores: cores, share: int64(cores) * protocol.Core, seen: map[life]time.Duration{}}
}

// sight is what is seen of the machine at one look.
type sight struct {
	own      map[int]process // the job's; not its keeper
	runnable int             // threads of others that run or want to; -1: not counted
	waited   time.Duration   // of what the keeper has waited for
}

// look takes what is seen.
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

// used takes what the living and their waited-for children tell. What was seen of
// each process counts as well, whether anybody waited for it or not.
func (m *meter) used(live time.Duration) {
	sum := m.gone
	for _, cpu := range m.seen {
		sum += cpu
	}
	m.cpu = max(m.cpu, sum, live)
}

// shared takes how many threads of others wanted to run on so many cores. Of a machine that is
// shared fairly, as many of the job as it has cores would get that part, were they
// always ready (001).
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

// fairShare is what a machine leaves as many threads as a job has cores, in
// micro-cores, if others are sum/looks at once.
func fairShare(cores, machine, sum, looks int) int64 {
	full := int64(cores) * protocol.Core
	wanted := int64(cores*looks + sum) // threads, times looks
	return min(full, full*int64(machine*looks)/wanted)
}

// family are a process and its descendants.
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

// observe looks at the descendants of this process, and at how many others want to
// run if that is asked for. What has been waited for is asked first, and who is gone
// after that is left out: nothing is counted twice, and what is missed is seen the
// next time.
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

// maxThreads of one process are looked at.
const maxThreads = 1 << 12

// threadsRunning is how many threads of a process run or want to.
func threadsRunning(pid int) int {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0
	}
	defer dir.Close() //nolint:errcheck // it is only read
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

// runnableNow is how many threads of the machine run or want to.
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

// waitedFor is what the descendants that this process has waited for have used,
// and the most that one of them had in memory.
func waitedFor() (time.Duration, int64) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r); err != nil {
		return 0, 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), r.Maxrss << 10
}

// sample measures the job, and writes down what has changed. While it is suspended
// it has no share of the machine to lose.
func (k *keeper) sample(now time.Time) error {
	k.meter.look(observe(k.paused.IsZero()))
	r := reading{k.usage(now), k.meter.memory}
	if r == k.last {
		return nil
	}
	k.last = r
	return writeUsage(k.job, r)
}

// usage is what the job has used until an instant: while it is suspended, nothing.
func (k *keeper) usage(now time.Time) protocol.Usage {
	idle := k.idle
	if !k.paused.IsZero() {
		idle += now.Sub(k.paused)
	}
	return protocol.Usage{CPU: k.meter.cpu, Wall: max(now.Sub(k.status.Started)-idle, 0), Share: k.meter.share}
}

// final is what the whole job has used, when everything of it is gone.
func (k *keeper) final() (protocol.Usage, int64) {
	waited, most := waitedFor()
	k.meter.look(sight{runnable: -1, waited: waited})
	return k.usage(k.status.Ended), max(most, k.meter.memory)
}

// fields of /proc/PID/stat behind the name, from 0.
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

// ticks reads a time of /proc; what is none counts as nothing.
func ticks(s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 48)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * tick
}

// pages reads a size of /proc in bytes.
func pages(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 40)
	if err != nil || n < 0 {
		return 0
	}
	return n * int64(os.Getpagesize())
}
