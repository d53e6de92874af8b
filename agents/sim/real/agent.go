package real

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"ramp/agents"
	"ramp/agents/sim/wan"
	"ramp/protocol"
)

const (
	retryPause = time.Second // after a failed start
	logTail    = 64 << 10    // bytes searched at the end of a log
)

// agent owns one agent's disk, its host, and the process that it keeps running.
type agent struct {
	name    string
	id      protocol.AgentID
	program string
	args    []string
	log     string
	host    *wan.Host
	disk    disk
	wrong   func(format string, args ...any) // records a violation

	mu      sync.Mutex
	process *os.Process // nil: down
	ready   bool        // since the last start
	ended   bool        // on purpose, in this life
	leaving bool        // do not start it again
	down    time.Duration
	wake    chan struct{} // holds one signal to start now
	met     chan struct{} // closed when it is ready for the first time
	address string        // where it listens
}

// readiness is the part that this package reads of a daemon's message that it is ready.
type readiness struct {
	Agent     protocol.AgentID `json:"agent"`
	Addresses []string         `json:"addresses"`
}

// keep restarts the process until it is to leave.
func (a *agent) keep() {
	for {
		pause := a.live()
		a.mu.Lock()
		leaving := a.leaving
		a.mu.Unlock()
		if leaving {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.wake:
		}
		timer.Stop()
	}
}

// live runs the process once, and returns how long to wait before the next start.
func (a *agent) live() time.Duration {
	cmd, ready, err := a.start()
	if err != nil {
		a.wrong("%s cannot be started: %v", a.name, err)
		return retryPause
	}
	listening := make(chan struct{})
	go func() { defer close(listening); a.listen(ready) }()
	err = cmd.Wait()
	<-listening
	a.mu.Lock()
	defer a.mu.Unlock()
	began := a.ready
	a.process, a.ready = nil, false
	if a.leaving && began && err != nil {
		a.wrong("%s left with %v: %s", a.name, err, tail(a.log))
	}
	if a.ended {
		down := a.down
		a.down = 0
		return down
	}
	a.wrong("%s ended by itself: %v: %s", a.name, err, tail(a.log)) // no fault may end a process
	return retryPause
}

// start starts the process on its host, unless it is to leave.
func (a *agent) start() (*exec.Cmd, *os.File, error) {
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	c := exec.Command(a.program, a.args...)
	c.Stdout, c.Stderr, c.ExtraFiles = log, log, []*os.File{w}
	c.Env = append(os.Environ(), "RAMP_READY_FD=3")
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.host.Start(c); err != nil {
		r.Close()
		return nil, nil, err
	}
	a.process, a.ended = c.Process, false
	if a.leaving {
		a.ended = true
		_ = c.Process.Kill() // it had to leave while it was down
	}
	return c, r, nil
}

// listen waits until the process is ready, or has ended.
func (a *agent) listen(r *os.File) {
	defer r.Close()
	var t readiness
	if json.NewDecoder(r).Decode(&t) != nil {
		return // it has ended
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = true
	if a.address == "" && len(t.Addresses) > 0 {
		a.address = t.Addresses[0]
		close(a.met)
	}
}

// await waits for the process to be ready for the first time.
func (a *agent) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	select {
	case <-a.met:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is not ready: %w: %s", a.name, ctx.Err(), tail(a.log))
	}
}

// kill sends SIGKILL; the process starts again after a while.
func (a *agent) kill(down time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process == nil {
		return false
	}
	a.ended, a.down = true, down
	return a.process.Kill() == nil
}

// signal sends a signal to the process, if it runs.
func (a *agent) signal(s syscall.Signal) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process != nil && a.process.Signal(s) == nil
}

// fill fills the agent's disk, or frees the space again.
func (a *agent) fill(full bool) bool {
	do := a.disk.free
	if full {
		do = a.disk.fill
	}
	if err := do(); err != nil {
		a.wrong("the disk of %s: %v", a.name, err)
		return false
	}
	return true
}

// revive starts the process now, if it is down.
func (a *agent) revive() { agents.Signal(a.wake) }

// leave ends the process with SIGTERM, or with SIGKILL if it does not end in time.
func (a *agent) leave(kept <-chan struct{}) {
	a.mu.Lock()
	a.leaving, a.ended = true, true
	if a.process != nil {
		_ = a.process.Signal(syscall.SIGTERM) // it may have ended
	}
	a.mu.Unlock()
	a.revive()
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-kept:
	case <-timer.C:
		a.wrong("%s did not leave within %s", a.name, leaveTime)
		a.signal(syscall.SIGKILL)
		<-kept
	}
}

// abandon kills the process and does not start it again.
func (a *agent) abandon() {
	a.mu.Lock()
	a.leaving, a.ended = true, true
	if a.process != nil {
		_ = a.process.Kill() // it may have ended
	}
	a.mu.Unlock()
	a.revive()
}

// tail is the last line of a log, or the first line of a panic.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	b = bytes.TrimSpace(b[max(0, len(b)-logTail):])
	if i := bytes.LastIndex(b, []byte("\npanic: ")); i >= 0 {
		first, _, _ := bytes.Cut(b[i+1:], []byte("\n"))
		return string(first)
	}
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}
