package queuetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Traits of drivers that run programs.
const (
	// PlainSignals: the driver can kill jobs, but not suspend them.
	PlainSignals Trait = 2
	// Apart: each directory is a machine of its own, and tests run in parallel.
	Apart Trait = 3
)

// slotLength is the length of jobs' slots: enough for a busy machine.
const slotLength = 60 * time.Second

// RunJobs tests a driver that runs programs against the contract.
func RunJobs(t *testing.T, open Open, traits ...Trait) {
	for _, c := range []struct {
		name string
		not  []Trait // skip it for drivers with one of these traits
		test func(w *worksite)
	}{
		{"a job that ends well", nil, endsWell},
		{"a job that fails", nil, fails},
		{"a job that is killed", nil, killed},
		{"a suspended job continues", []Trait{PlainSignals}, suspended},
		{"all of a suspended job stands still, whatever it ignores and forks", []Trait{PlainSignals}, standsStill},
		{"the time for which a job of a federation is suspended does not count", []Trait{PlainSignals}, stretched},
		{"a job is metered while it runs", nil, metered},
		{"a job ends with its slot", nil, endsWithSlot},
		{"a job that was never submitted is unknown", nil, neverSubmitted},
		{"a job without a reservation is refused", nil, noReservation},
		{"a job begins once, however often it is submitted", nil, beginsOnce},
		{"a job continues while the agent is away", nil, outlivesAgent},
		{"a job's output is kept", nil, prints},
		{"a program that does not exist", nil, noProgram},
		{"no shell reads the words", nil, notByShell},
		{"processes that a job leaves are ended", nil, leavesRunning},
		{"only its own files become those of a job's account", nil, ownFilesOnly},
	} {
		if slices.ContainsFunc(c.not, func(t Trait) bool { return slices.Contains(traits, t) }) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if slices.Contains(traits, Apart) {
				t.Parallel()
			}
			dir := t.TempDir()
			w := &worksite{dir: t.TempDir(), state: dir, open: open}
			w.bench = start(t, open, dir)
			c.test(w)
		})
	}
}

// worksite is a bench with reservations that have begun.
type worksite struct {
	*bench
	dir   string // of jobs
	state string // of the driver
	open  Open
}

// begin reserves a slot that begins now, and makes a job of a command for it.
func (w *worksite) job(id string, length time.Duration, argv ...string) message.Job {
	w.Helper()
	from := time.Now().Truncate(time.Second).Add(time.Second).UTC()
	slot := protocol.Slot{Start: from, End: from.Add(length), Cores: 1}
	w.granted("r-"+id, slot)
	dir := filepath.Join(w.dir, id)
	if err := os.MkdirAll(filepath.Join(dir, "work"), 0o755); err != nil {
		w.Fatal(err)
	}
	time.Sleep(time.Until(from)) // the slot's start: nothing else to wait for
	return message.Job{ID: id, Reservation: "r-" + id, Slot: slot, Argv: argv, Dir: dir, Env: []string{"RAMP_UNIT=1"}}
}

func (w *worksite) submit(job message.Job) {
	w.Helper()
	w.send(protocol.Request, message.Submit{Job: job})
	if s := w.status(job.ID); s.State == "" {
		w.Fatalf("the submitted job has no state")
	}
}

// status is the next status of a job; a refusal fails the test.
func (w *worksite) status(id string) protocol.JobStatus {
	w.Helper()
	body := w.next(id)
	c, ok := body.(message.JobChanged)
	if !ok {
		w.Fatalf("job %s: %+v", id, body)
	}
	if err := c.Status.Validate(); err != nil {
		w.Fatal(err)
	}
	return c.Status
}

// refusal is the reason why the next request about a job was refused.
func (w *worksite) refusal(id string) protocol.Reason {
	w.Helper()
	body := w.next(id)
	r, ok := body.(message.JobRefused)
	if !ok {
		w.Fatalf("job %s: %+v, want it refused", id, body)
	}
	return r.Reason
}

func (w *worksite) next(id string) protocol.Body {
	w.Helper()
	limit := time.After(2 * patience)
	for {
		select {
		case m := <-w.arrived:
			switch b := m.Body.(type) {
			case message.JobChanged:
				if b.ID == id {
					return b
				}
			case message.JobRefused:
				if b.ID == id {
					return b
				}
			}
		case <-limit:
			w.Fatalf("nothing of job %s within %s", id, 2*patience)
		}
	}
}

// until is the first status in one of these states.
func (w *worksite) until(id string, states ...protocol.JobState) protocol.JobStatus {
	w.Helper()
	for {
		s := w.status(id)
		if slices.Contains(states, s.State) {
			return s
		}
		if s.State.Over() {
			w.Fatalf("job %s is %+v, want one of %v", id, s, states)
		}
	}
}

func (w *worksite) over(id string) protocol.JobStatus {
	w.Helper()
	return w.until(id, protocol.JobExited, protocol.JobKilled, protocol.JobExpired, protocol.JobLost)
}

// run submits a job and waits for its end.
func (w *worksite) run(job message.Job) protocol.JobStatus {
	w.Helper()
	w.send(protocol.Request, message.Submit{Job: job})
	return w.over(job.ID)
}

func (w *worksite) read(job message.Job, name string) string {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(job.Dir, name))
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

func endsWell(w *worksite) {
	s := w.run(w.job("j.1", slotLength, "sleep", "1"))
	if !s.Success() || s.Started.IsZero() || s.Ended.Before(s.Started) {
		w.Fatalf("%+v", s)
	}
	if s.Usage.Wall < 500*time.Millisecond || s.Usage.Wall > slotLength {
		w.Errorf("it reports that it ran for %s", s.Usage.Wall)
	}
}

func fails(w *worksite) {
	if s := w.run(w.job("j.1", slotLength, "false")); s.State != protocol.JobExited || s.Exit != 1 {
		w.Fatalf("%+v", s)
	}
}

func killed(w *worksite) {
	job := w.job("j.1", slotLength, "sleep", "600")
	w.submit(job)
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalKill})
	if s := w.over(job.ID); s.State != protocol.JobKilled {
		w.Fatalf("%+v", s)
	}
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalKill})
	if r := w.refusal(job.ID); r.Code != protocol.CodeUnknown {
		w.Fatalf("killing an ended job: %+v", r)
	}
}

// untilGo waits for letGo.
const untilGo = "until [ -e go ]; do sleep 0.1; done; echo gone"

func (w *worksite) letGo(job message.Job) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(job.Dir, "work", "go"), nil, 0o644); err != nil {
		w.Fatal(err)
	}
}

func suspended(w *worksite) {
	job := w.job("j.1", slotLength, "/bin/sh", "-c", untilGo)
	w.send(protocol.Request, message.Submit{Job: job})
	w.until(job.ID, protocol.JobRunning)
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalSuspend})
	w.until(job.ID, protocol.JobSuspended)
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalResume})
	w.until(job.ID, protocol.JobRunning)
	w.letGo(job)
	if s := w.over(job.ID); !s.Success() {
		w.Fatalf("%+v", s)
	}
}

// standsStill suspends a job that ignores every signal that can be ignored, and whose children
// leave it for sessions of their own all the time, also while it is being suspended: what they
// write must stop growing. Then it goes on.
func standsStill(w *worksite) {
	const script = `trap '' TSTP TTIN TTOU CONT HUP INT USR1 USR2
while :; do (setsid sh -c 'echo x >>alive; sleep 0.3; echo y >>alive' &); sleep 0.02; done`
	job := w.job("j.1", 5*slotLength, "/bin/sh", "-c", script)
	w.send(protocol.Request, message.Submit{Job: job})
	w.until(job.ID, protocol.JobRunning)
	w.grows(job, "work/alive")
	for range 2 {
		w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalSuspend})
		w.until(job.ID, protocol.JobSuspended)
		w.settles(job, "work/alive", "it runs on while it is suspended")
		w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalResume})
		w.until(job.ID, protocol.JobRunning)
		w.grows(job, "work/alive")
	}
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalKill})
	w.over(job.ID)
}

// stretched suspends a job whose slot stretches until the slot would have ended.
func stretched(w *worksite) {
	job := w.job("j.1", 5*slotLength, "/bin/sh", "-c", untilGo)
	job.Slot.End, job.Stretch = time.Now().Add(15*time.Second), true
	w.send(protocol.Request, message.Submit{Job: job})
	w.until(job.ID, protocol.JobRunning)
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalSuspend})
	w.until(job.ID, protocol.JobSuspended)
	time.Sleep(time.Until(job.Slot.End.Add(time.Second))) // the slot's end: nothing else to wait for
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalResume})
	w.until(job.ID, protocol.JobRunning)
	time.Sleep(2 * time.Second) // it has work left for so long
	w.letGo(job)
	if s := w.over(job.ID); !s.Success() || w.read(job, "stdout") != "gone\n" {
		w.Fatalf("it lost the time for which it was suspended: %+v, %q", s, w.read(job, "stdout"))
	}
}

// metered queries a job that keeps a core busy until its meter has moved.
func metered(w *worksite) {
	job := w.job("j.1", 5*slotLength, "sh", "-c", "while :; do :; done")
	w.send(protocol.Request, message.Submit{Job: job})
	s := w.until(job.ID, protocol.JobRunning)
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for ; s.Usage.CPU < 100*time.Millisecond || s.Usage.Wall <= 0; <-pause.C {
		w.send(protocol.QueryRef, message.JobQuery{Job: job})
		s = w.until(job.ID, protocol.JobRunning)
	}
	if u := s.Usage; u.CPU > time.Duration(job.Slot.Cores)*(u.Wall+time.Second) || u.Share <= 0 || u.Share > int64(job.Slot.Cores)*protocol.Core {
		w.Errorf("while it runs: %+v", u)
	}
	w.send(protocol.Request, message.Signal{ID: job.ID, Verb: message.SignalKill})
	if end := w.over(job.ID); end.Usage.CPU < s.Usage.CPU-time.Second {
		w.Errorf("it ended with %+v after %+v", end.Usage, s.Usage)
	}
}

// endsWithSlot retries with a longer slot on a machine so slow that a short slot ends
// before its job begins.
func endsWithSlot(w *worksite) {
	for n, length := 1, 4*time.Second; length < slotLength; n, length = n+1, 2*length {
		job := w.job(fmt.Sprintf("j.%d", n), length, "sleep", "600")
		w.send(protocol.Request, message.Submit{Job: job})
		body := w.next(job.ID)
		if r, refused := body.(message.JobRefused); refused && r.Reason.Code == protocol.CodeExpired {
			continue
		}
		if w.endedWithSlot(job, body) {
			return
		}
	}
	w.Fatalf("no slot below %s is long enough for a job to be submitted", slotLength)
}

// endedWithSlot checks the end of a job whose first message is body; false: it never began.
func (w *worksite) endedWithSlot(job message.Job, body protocol.Body) bool {
	w.Helper()
	c, ok := body.(message.JobChanged)
	if !ok {
		w.Fatalf("%+v", body)
	}
	s := c.Status
	if !s.State.Over() {
		s = w.over(job.ID)
	}
	if s.State == protocol.JobLost && s.Started.IsZero() {
		return false
	}
	if s.State != protocol.JobExpired {
		w.Fatalf("%+v", s)
	}
	if late := s.Ended.Sub(job.Slot.End); late > 15*time.Second || late < -2*time.Second {
		w.Errorf("it ended %s after its slot", late)
	}
	return true
}

func neverSubmitted(w *worksite) {
	w.send(protocol.QueryRef, message.JobQuery{Job: w.job("j.1", slotLength, "true")})
	if r := w.refusal("j.1"); r.Code != protocol.CodeUnknown {
		w.Fatalf("%+v", r)
	}
}

func noReservation(w *worksite) {
	job := w.job("j.1", slotLength, "true")
	job.Reservation = "never-made"
	w.send(protocol.Request, message.Submit{Job: job})
	if r := w.refusal("j.1"); r.Code == protocol.CodeUnavailable {
		w.Fatalf("%+v, which asks for another try", r)
	}
}

// again opens the driver anew, as after a crash of the agent.
func (w *worksite) again() {
	w.Helper()
	w.stop()
	w.bench = start(w.TB, w.open, w.state)
}

func beginsOnce(w *worksite) {
	job := w.job("j.1", slotLength, "/bin/sh", "-c", "echo begun >>begun; sleep 1")
	for range 2 {
		w.send(protocol.Request, message.Submit{Job: job})
		w.send(protocol.Request, message.Submit{Job: job})
		w.status(job.ID)
		w.again()
	}
	w.run(job)
	w.send(protocol.Request, message.Submit{Job: job}) // and after its end
	if s := w.over(job.ID); !s.Success() {
		w.Fatalf("%+v", s)
	}
	if got := w.read(job, "work/begun"); got != "begun\n" {
		w.Fatalf("it began %d times", strings.Count(got, "\n"))
	}
}

func outlivesAgent(w *worksite) {
	job := w.job("j.1", slotLength, "/bin/sh", "-c", "sleep 2; exit 7")
	w.submit(job)
	w.again()
	w.send(protocol.QueryRef, message.JobQuery{Job: job})
	if s := w.over(job.ID); s.State != protocol.JobExited || s.Exit != 7 {
		w.Fatalf("%+v", s)
	}
}

func prints(w *worksite) {
	job := w.job("j.1", slotLength, "/bin/sh", "-c", "echo hello $RAMP_UNIT; echo oops >&2; pwd")
	if s := w.run(job); !s.Success() {
		w.Fatalf("%+v: %s", s, w.read(job, "stderr"))
	}
	if got, want := w.read(job, "stdout"), "hello 1\n"+filepath.Join(job.Dir, "work")+"\n"; got != want {
		w.Errorf("stdout is %q, want %q", got, want)
	}
	if got := w.read(job, "stderr"); got != "oops\n" {
		w.Errorf("stderr is %q", got)
	}
}

func noProgram(w *worksite) {
	if s := w.run(w.job("j.1", slotLength, "/no/such/program")); s.State != protocol.JobExited || s.Exit != 127 {
		w.Fatalf("%+v", s)
	}
}

func notByShell(w *worksite) {
	odd := []string{"$(touch shell)", "; touch shell", "a b", "it's", `"`, "back`touch shell`tick", "two\nlines", `\n`, "*", "--x", ""}
	job := w.job("j.1", slotLength, append([]string{"/usr/bin/printf", `%s|`}, odd...)...)
	if s := w.run(job); !s.Success() {
		w.Fatalf("%+v", s)
	}
	if got, want := w.read(job, "stdout"), strings.Join(odd, "|")+"|"; got != want {
		w.Errorf("its arguments are %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(job.Dir, "work", "shell")); err == nil {
		w.Error("a shell read it")
	}
}

// leavesRunning: a child in its own session writes on and on; the file must stop growing
// when the job has ended.
func leavesRunning(w *worksite) {
	const script = `setsid /bin/sh -c 'while :; do echo x >>alive; sleep 0.05; done' & while [ ! -s alive ]; do sleep 0.05; done`
	job := w.job("j.1", slotLength, "/bin/sh", "-c", script)
	if s := w.run(job); !s.Success() {
		w.Fatalf("%+v", s)
	}
	w.settles(job, "work/alive", "its child continues")
}

// settles waits until a file of a job has stopped growing: batch systems need a moment for it.
func (w *worksite) settles(job message.Job, name, why string) {
	w.Helper()
	for before, tries := len(w.read(job, name)), 0; ; tries++ {
		time.Sleep(300 * time.Millisecond)
		now := len(w.read(job, name))
		if now == before {
			return
		}
		if before = now; tries > 50 {
			w.Fatal(why)
		}
	}
}

// grows waits until a file of a job is longer than now.
func (w *worksite) grows(job message.Job, name string) {
	w.Helper()
	size := func() int {
		b, _ := os.ReadFile(filepath.Join(job.Dir, name)) // nothing is written yet
		return len(b)
	}
	for before, tries := size(), 0; size() == before; tries++ {
		time.Sleep(50 * time.Millisecond)
		if tries > 600 {
			w.Fatal("it stands still")
		}
	}
}
