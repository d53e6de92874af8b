package slurm_test

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/queuetest"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
	"ramp/protocol/message"
)

// meter is a driver whose squeue and sacct say what a test has them say.
type meter struct {
	*testing.T
	cfg   slurm.Config
	send  func(protocol.Body)
	told  chan protocol.Body
	stop  func()
	words string        // directory of what the programs say
	name  string        // of the slot's reservation
	slot  protocol.Slot // that ended a minute ago

	ahead atomic.Int64 // of the clock, in ns
}

// none is sacct where Slurm keeps no accounts.
const none = `echo "Slurm accounting storage is disabled" >&2; exit 1`

func newMeter(t *testing.T) *meter {
	m := &meter{T: t, cfg: fakeConfig(fakeSlurm(t, t.TempDir())), name: queue.MarkOf(queuetest.Agent).Name("r.1")}
	m.cfg.Dir, m.words, m.cfg.Limit = t.TempDir(), t.TempDir(), longLimit
	m.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())) }
	end := time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	m.slot = protocol.Slot{Start: end.Add(-time.Hour), End: end, Cores: 8}
	for _, program := range []string{"squeue", "sacct"} {
		script(t, m.cfg.Bin, program, ". '"+filepath.Join(m.words, program)+"'")
	}
	m.squeue()
	m.says("sacct", none)
	return m
}

// start runs the driver, as after a crash of the agent.
func (m *meter) start() {
	m.Helper()
	d, err := slurm.Open(m.cfg)
	if err != nil {
		m.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	m.told = make(chan protocol.Body, 1024)
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(g protocol.Message) {
			switch b := g.Body.(type) {
			case message.SlotUsed, message.Reserved:
				m.told <- b
			}
		})
	}()
	m.send = func(b protocol.Body) { d.Send(protocol.Message{Sender: m.cfg.Agent, Body: b}) }
	m.stop = func() { cancel(); <-stopped }
	m.Cleanup(m.stop)
}

func (m *meter) next() protocol.Body {
	m.Helper()
	select {
	case b := <-m.told:
		return b
	case <-time.After(2 * time.Minute):
		m.Fatal("nothing is told")
		return nil
	}
}

// says has a program run other lines from now on. The program itself is not written
// anew, for it may just begin.
func (m *meter) says(program, lines string) {
	m.Helper()
	file := filepath.Join(m.words, program)
	if err := os.WriteFile(file+".new", []byte(lines+"\n"), 0o600); err != nil {
		m.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		m.Fatal(err)
	}
}

// squeue has squeue list jobs, as a newer version does: ended ones only if asked.
func (m *meter) squeue(jobs ...string) {
	m.Helper()
	m.says("squeue", `case "$*" in *"--all --states=all"*) ;; *) echo '{"meta":{},"errors":[],"jobs":[]}'; exit;; esac`+"\ncat <<'E'\n"+`{"meta":{},"errors":[],"jobs":[`+strings.Join(jobs, ",\n")+"]}\nE")
}

// sacct has sacct list jobs.
func (m *meter) sacct(lines ...string) {
	m.Helper()
	m.says("sacct", "cat <<'E'\n"+slurm.Ledger+"\n"+strings.Join(append(lines, ""), "\n")+"E")
}

func (m *meter) at(minute int) time.Time {
	return m.slot.Start.Add(time.Duration(minute) * time.Minute)
}

// job is one as squeue shows it, that ran in a reservation from and to a minute.
func (m *meter) job(id int, state, reservation string, from, to, cpus int) string {
	m.Helper()
	me, err := user.Current()
	if err != nil {
		m.Fatal(err)
	}
	return fmt.Sprintf(`{"job_id":%d,"partition":"batch","job_state":%q,"resv_name":%q,"nodes":"node1","user_name":%q,"cpus":%d,"start_time":%d,"end_time":%d}`,
		id, state, reservation, me.Username, cpus, m.at(from).Unix(), m.at(to).Unix())
}

func (m *meter) line(id int, state string, from, to, cpus int, cpu string) string {
	return fmt.Sprintf("%d|%s|%s|%s|%d|%d|%s|3|%s", id, state, stamp(m.at(from)), stamp(m.at(to)), (to-from)*60, cpus, cpu, m.name)
}

func (m *meter) query() message.SlotQuery { return message.SlotQuery{ID: "r.1", Slot: m.slot} }

// is asks what became of the slot.
func (m *meter) is(what string, by protocol.Measured, state protocol.JobState, cpu, wall time.Duration) {
	m.Helper()
	m.send(m.query())
	got, ok := m.next().(message.SlotUsed)
	if !ok {
		m.Fatalf("%s: no answer", what)
	}
	want := protocol.Usage{CPU: cpu, Wall: wall, Share: 8 * protocol.Core}
	if got.Measured != by || got.Status.State != state || got.Status.Usage != want || got.Status.Validate() != nil {
		m.Errorf("%s: %+v; want %s by %q, %+v", what, got, state, by, want)
	}
}

// later checks that the answer is put off: the next is to the next question.
func (m *meter) later(what string) {
	m.Helper()
	m.send(m.query())
	m.send(message.Keep{ID: "nothing"})
	if got, ok := m.next().(message.Reserved); !ok {
		m.Fatalf("%s: %+v; want no answer yet", what, got)
	}
}

const hour = time.Hour

func TestASlotIsMeasuredByAccounting(t *testing.T) {
	m := newMeter(t)
	m.squeue(m.job(1, "COMPLETED", m.name, 0, 30, 4))
	m.sacct(m.line(1, "COMPLETED", 0, 30, 4, "00:30:00"), m.line(2, "FAILED", 15, 45, 2, "00:00:00"),
		"3|COMPLETED|"+stamp(m.at(0))+"|"+stamp(m.at(60))+"|3600|8|08:00:00||")
	m.start()
	m.is("one whose processor time is known, and one that had its cores", protocol.MeasuredAccounting, protocol.JobExpired, 90*time.Minute, 45*time.Minute)
}

// Jobs of other slots, of nobody, of other accounts, and that never began do not count.
func TestASlotIsMeasuredByTheJobsThatWereSeen(t *testing.T) {
	m := newMeter(t)
	m.squeue(m.job(1, "COMPLETED", m.name, 0, 30, 4), m.job(2, "RUNNING", m.name+"0", 0, 60, 8), m.job(3, "COMPLETED", "", 0, 60, 8),
		strings.Replace(m.job(4, "COMPLETED", m.name, 0, 60, 8), `"user_name":"`, `"user_name":"x`, 1), m.job(5, "CANCELLED", m.name, 50, 50, 8),
		m.job(6, "PENDING", m.name, 0, 60, 8), m.job(7, "CANCELLED", m.name, 30, 61, 2))
	m.start()
	m.is("no accounting", protocol.MeasuredJobs, protocol.JobExpired, 3*hour, hour)
	m.stop()
	m.squeue()
	m.start()
	m.is("Slurm has forgotten them, and the agent began anew", protocol.MeasuredJobs, protocol.JobExpired, 3*hour, hour)
}

// While a slot is on, a job counts until now, and Slurm's own end of it is that of its
// limit.
func TestASlotThatIsNotOver(t *testing.T) {
	m := newMeter(t)
	m.slot.End = m.slot.End.Add(24 * hour)
	m.start()
	m.send(m.query())
	if got := m.next().(message.SlotUsed); got.Status.State != protocol.JobWaiting || got.Status.Usage != (protocol.Usage{}) {
		t.Fatalf("nothing runs: %+v", got)
	}
	m.squeue(m.job(1, "RUNNING", m.name, 0, 3000, 4))
	m.ahead.Add(int64(time.Minute))
	m.send(m.query())
	got := m.next().(message.SlotUsed)
	u := got.Status.Usage
	if got.Status.State != protocol.JobRunning || u.CPU != 4*u.Wall || u.Wall < hour || u.Wall > got.At.Sub(m.slot.Start) {
		t.Fatalf("it runs: %+v", got)
	}
}

func TestASlotOfWhichNothingIsKnown(t *testing.T) {
	m := newMeter(t)
	m.squeue(m.job(1, "RUNNING", "", 0, 60, 8), m.job(2, "CANCELLED", m.name, 50, 50, 8)) // which never began
	m.start()
	m.is("no accounting", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
	m.sacct("1|COMPLETED|" + stamp(m.at(0)) + "|" + stamp(m.at(60)) + "|3600|8|08:00:00||")
	m.is("accounting that knows of no job in it", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
	m.stop()
	m.cfg.Hold = slurm.HoldJob
	m.squeue(m.job(1, "COMPLETED", m.name, 0, 60, 8))
	m.start()
	m.is("a slot that a placeholder job held", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
}

// Accounting that is away for a while, or garbled, is waited for.
func TestAccountingThatDoesNotAnswer(t *testing.T) {
	for name, lines := range map[string]string{
		"away":                 `echo "sacct: error: Problem talking to the database: Connection refused" >&2; exit 1`,
		"an error page":        "echo '<html>'",
		"nothing":              "exit 0",
		"cut off":              "printf '" + slurm.Ledger + "\\n1|COMP'",
		"200 MB":               "head -c 200000000 /dev/zero",
		"an unknown account's": `echo "sacct: error: Invalid user id: ann" >&2; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeter(t)
			m.squeue(m.job(1, "COMPLETED", m.name, 0, 30, 4))
			m.says("sacct", lines)
			m.start()
			m.later("at first")
			m.ahead.Store(int64(20 * time.Minute))
			m.later("after twenty minutes")
			m.ahead.Store(int64(40 * time.Minute))
			m.is("after forty minutes", protocol.MeasuredJobs, protocol.JobExpired, 2*hour, 30*time.Minute)
		})
	}
}

// Accounting that hangs is asked rarely, since everything else waits for it.
func TestAccountingThatHangsIsAskedRarely(t *testing.T) {
	m := newMeter(t)
	m.cfg.Limit = 10 * time.Second
	asked := filepath.Join(m.words, "asked")
	m.says("sacct", "echo >>'"+asked+"'; exec sleep 600")
	m.squeue(m.job(1, "COMPLETED", m.name, 0, 30, 4))
	m.start()
	for i, want := range []int{1, 1, 2, 2} {
		m.ahead.Store(int64(time.Duration(i/2) * 6 * time.Minute))
		m.later(fmt.Sprintf("question %d", i+1))
		if got, err := os.ReadFile(asked); err != nil || len(got) != want {
			t.Errorf("after question %d sacct was asked %d times, want %d: %v", i+1, len(got), want, err)
		}
	}
}

// So are jobs whose end is not told, though not for so long.
func TestJobsWhoseEndIsNotTold(t *testing.T) {
	m := newMeter(t)
	m.squeue(m.job(1, "COMPLETED", m.name, 0, 30, 4))
	m.sacct(m.line(2, "COMPLETED", 30, 60, 1, "00:00:00"))
	m.start()
	m.later("accounting has not heard of one")
	m.ahead.Store(int64(10 * time.Minute))
	m.is("nor will it", protocol.MeasuredAccounting, protocol.JobExpired, 2*hour+30*time.Minute, hour)
}

func TestAJobThatIsLostFromSight(t *testing.T) {
	m := newMeter(t)
	m.ahead.Store(int64(-31 * time.Minute)) // in the middle of the slot
	m.squeue(m.job(1, "RUNNING", m.name, 0, 3000, 4))
	m.start()
	m.send(m.query())
	seen := m.next().(message.SlotUsed).Status.Usage
	m.squeue()
	m.ahead.Store(0)
	m.later("it may come back")
	m.ahead.Store(int64(10 * time.Minute))
	m.send(m.query())
	got := m.next().(message.SlotUsed)
	if u := got.Status.Usage; got.Measured != protocol.MeasuredJobs || u.Wall < seen.Wall || u.Wall > seen.Wall+10*time.Minute || u.CPU != 4*u.Wall {
		t.Fatalf("seen for %s, it counts %+v", seen.Wall, got)
	}
}

// Slurm's command is away: what ran cannot be known now.
func TestASlotWithoutSlurm(t *testing.T) {
	m := newMeter(t)
	m.start()
	m.says("squeue", "exit 1")
	m.ahead.Store(int64(2 * hour))
	m.later("for two hours")
	m.ahead.Store(int64(4 * hour))
	m.is("for four hours", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
}

// More jobs than are remembered: the slot counts, unless there is accounting.
func TestMoreJobsThanAreRemembered(t *testing.T) {
	m := newMeter(t)
	list := make([]string, slurm.MaxRan+1)
	for i := range list {
		list[i] = m.job(i+1, "COMPLETED", m.name, 0, 30, 1)
	}
	m.squeue(list...)
	m.start()
	m.is("one too many", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
}

// What an earlier life has written is read, or is nothing.
func TestAFileOfWhatRanThatIsGarbled(t *testing.T) {
	m := newMeter(t)
	m.squeue(m.job(1, "COMPLETED", m.name, 0, 30, 4))
	m.start()
	m.is("it is written", protocol.MeasuredJobs, protocol.JobExpired, 2*hour, 30*time.Minute)
	m.stop()
	m.squeue()
	file := filepath.Join(m.cfg.Dir, "ran", m.name+".json")
	if err := os.WriteFile(file, []byte(`{"jobs":[{"id":1`), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	m.is("it is garbled", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
}

// The files of slots that nobody asks for any more go; a slot may last for days.
func TestOldFilesOfWhatRanAreRemoved(t *testing.T) {
	m := newMeter(t)
	dir := filepath.Join(m.cfg.Dir, "ran")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mark := queue.MarkOf(queuetest.Agent)
	long := time.Now().Add(-50 * hour)
	for name, until := range map[string]time.Time{mark.Name("old"): long, mark.Name("goes-on"): time.Now().Add(hour), "others": long} {
		file := filepath.Join(dir, name+".json")
		err := os.WriteFile(file, fmt.Appendf(nil, `{"until":%q,"jobs":[]}`, until.Format(time.RFC3339)), 0o600)
		if err == nil {
			err = os.Chtimes(file, long, long)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m.start()
	m.is("after a look", protocol.MeasuredSlot, protocol.JobExpired, 8*hour, hour)
	for name, want := range map[string]bool{mark.Name("old"): false, mark.Name("goes-on"): true, "others": true} {
		if _, err := os.Stat(filepath.Join(dir, name+".json")); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", name, err == nil, want)
		}
	}
}
