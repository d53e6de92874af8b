package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ramp/protocol/message"
)

// 'ramp user run' is killed at every step from the first bid to the collected outputs,
// and given again: with a daemon, without one, and with the daemon killed in its place.
// Each time one slot is bought, the program has run once, and its output is there.
func TestARunThatIsKilledAndGivenAgainRunsOnce(t *testing.T) {
	t.Parallel()
	m := startRunMarket(t)
	for _, c := range []struct{ name, victim string }{
		{"the command, beside a daemon", "command"},
		{"the daemon, under the command", "daemon"},
		{"the command, which is the agent itself", "agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &runCommand{killedRun: newKilledRun(t, m), victim: c.victim, file: filepath.Join(t.TempDir(), "run.xml")}
			must(t, os.WriteFile(r.file, []byte(runDocument()), 0o600))
			if c.victim == "agent" {
				m.daemons["user"].kill()
			}
			r.before = len(settledOf(t, m.path("user")))
			r.killedAt(slices.Clone(runSteps))
			r.once()
		})
	}
	m.restart(t, "user")
	m.settleDown(t)
	m.verify(t)
}

// runCommand is one command line that is killed and given again.
type runCommand struct {
	*killedRun
	victim string
	file   string
	before int             // purchases that were settled before
	old    map[string]bool // purchases that there were before
	told   bytes.Buffer    // by the last command
}

func (r *runCommand) out() string { return filepath.Join(r.dir, "got") }

// start gives the command.
func (r *runCommand) start() (c *exec.Cmd, ended chan error) {
	r.told.Reset()
	c = exec.Command("ramp", "user", "run", r.file, "--dir", r.m.path("user"), "--optimize", "time", "--in", filepath.Join(r.dir, "input")+"=in",
		"--out", r.out(), "--", "/bin/sh", "-c", `echo "$0"; sleep 0.7; cat in in >out`, r.dir)
	c.Env = append(os.Environ(), "RAMP_SESSION="+r.dir)
	c.Stderr = &r.told
	must(r.t, c.Start())
	ended = make(chan error, 1)
	go func() { ended <- c.Wait() }()
	return c, ended
}

// killedAt gives the command again and again, and kills at each step, or after it if it
// went by unseen, until the command comes to its end.
func (r *runCommand) killedAt(steps []string) {
	r.old = map[string]bool{}
	for _, id := range r.purchaseIDs() {
		r.old[id] = true
	}
	kills := 0
	for range len(steps) + maxTries {
		c, ended := r.start()
		step, over := r.await(steps, ended)
		if step != "" {
			kills++
			over = r.kill(c, ended)
		}
		if over {
			r.t.Logf("%s was killed %d times", r.victim, kills)
			if kills == 0 {
				r.t.Error("it came to its end before it could be killed")
			}
			return
		}
		// Where it ended by itself nothing was bought: what was not signed is bought anew.
		steps = slices.DeleteFunc(steps, func(s string) bool { return slices.Index(runSteps, s) <= slices.Index(runSteps, step) })
	}
	r.t.Fatalf("it does not come to its end: %s", r.told.String())
}

// await waits for the next step, or until the command has ended; over: as it should.
func (r *runCommand) await(steps []string, ended chan error) (step string, over bool) {
	r.t.Helper()
	must(r.t, until(untilTime, func() (bool, error) {
		select {
		case err := <-ended:
			step, over = "", err == nil
			return true, nil
		default:
		}
		step = r.now()
		return len(steps) > 0 && slices.Index(runSteps, step) >= slices.Index(runSteps, steps[0]), fmt.Errorf("it is %s", step)
	}))
	return step, over
}

// now is how far the newest purchase is; "": it has not begun, or is over.
func (r *runCommand) now() string {
	list, err := r.m.purchases()
	if err != nil {
		return ""
	}
	for _, p := range slices.Backward(list) {
		if !r.old[p.ID] {
			r.id = p.ID
			return r.step()
		}
	}
	return ""
}

// kill ends the command, or its daemon under it; the daemon is started again. over: it
// had come to its end just before.
func (r *runCommand) kill(c *exec.Cmd, ended chan error) (over bool) {
	r.t.Helper()
	if r.victim != "daemon" {
		_ = c.Process.Kill() // it may have come to its end
		return <-ended == nil || r.shown()
	}
	r.m.daemons["user"].kill()
	err := <-ended
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 75 || !strings.Contains(r.told.String(), "the agent's daemon ended before it answered\n  hint: ")) {
		r.t.Errorf("when its daemon is killed the command ends with %v: %s", err, r.told.String())
	}
	r.m.restart(r.t, "user")
	r.m.meet(r.t)
	return err == nil || r.shown()
}

// shown reports whether the command has shown everything and noted that: given again
// then, it means one more.
func (r *runCommand) shown() bool {
	r.t.Helper()
	var list []message.Run
	ramp(r.t, &list, "user", "jobs", "--dir", r.m.path("user"))
	i := slices.IndexFunc(list, func(x message.Run) bool { return x.ID == r.id })
	return i >= 0 && list[i].Collected
}

// purchaseIDs are those of all purchases that there were.
func (r *runCommand) purchaseIDs() (ids []string) {
	r.t.Helper()
	var list []message.Purchase
	ramp(r.t, &list, "user", "list", "--dir", r.m.path("user"))
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	return ids
}

// once: one slot was bought, and the program has run once, on its input.
func (r *runCommand) once() {
	r.t.Helper()
	if n := len(settledOf(r.t, r.m.path("user"))) - r.before; n != 1 {
		r.t.Errorf("%d purchases are settled, want one", n)
	}
	if n := r.m.printed(r.t, r.dir); n != 1 {
		r.t.Errorf("the program began %d times, want once", n)
	}
	got, err := os.ReadFile(filepath.Join(r.out(), "out"))
	if err != nil || !bytes.Equal(got, append(slices.Clone(r.input), r.input...)) {
		r.t.Errorf("there are %d bytes (%v), want the input twice, %d bytes: %s", len(got), err, 2*len(r.input), r.told.String())
	}
}
