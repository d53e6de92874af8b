package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ramp/agents/background"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/protocol/message"
)

// Process is one agent of the demonstration, a daemon.
type Process struct {
	Name string
	Dir  string
	cmd  *exec.Cmd
	background.Ready
}

// startTime is how long an agent may take to be ready.
const startTime = 30 * time.Second

// Tuning fits many agents onto one machine. Each has one conversation at a time, so a second thread
// would only take turns with the first, and its heap is small. The environment's own settings come
// later and win.
func Tuning() []string { return []string{"GOMAXPROCS=1", "GOGC=200"} }

// spawn starts this program as a daemon that logs to agent.log in its directory. Unless keep is set,
// it dies with this process.
func spawn(dir string, keep bool, env []string, args ...string) (*Process, *os.File, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	p := &Process{Name: filepath.Base(dir), Dir: dir, cmd: exec.Command(exe, args...)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.ExtraFiles = []*os.File{w}
	p.cmd.Env = append(append(append(Tuning(), os.Environ()...), background.ReadyEnv+"=3"), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !keep {
		p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return p, r, nil
}

// await waits until the daemon reports that it is ready.
func (p *Process) await(ctx context.Context, r *os.File) error {
	defer r.Close()
	if err := r.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) }) // wakes the read below
	defer stop()
	err := json.NewDecoder(r).Decode(&p.Ready)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF):
		return exit.Fail(exit.Failed, "its log is "+p.log(), "%s did not start: %s", p.Name, p.lastLine())
	case err != nil:
		return exit.Fail(exit.Failed, "its log is "+p.log(), "%s is not ready after %s", p.Name, startTime)
	}
	return nil
}

// PID is the daemon's process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

func (p *Process) log() string { return filepath.Join(p.Dir, "agent.log") }

func (p *Process) lastLine() string {
	b, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

func (p *Process) call() (*control.Client, error) {
	c, ok := control.Dial(p.Dir)
	if !ok {
		return nil, exit.Fail(exit.Failed, "its log is "+p.log(), "%s does not answer", p.Name)
	}
	return c, nil
}

// Ask makes one call to a daemon.
func Ask[Q, A any](ctx context.Context, p *Process, call control.Endpoint[Q, A], q Q, a *A) error {
	agent, err := p.call()
	if err != nil {
		return err
	}
	return call.Ask(ctx, agent, q, a)
}

// Buy has a user agent buy, approves nothing beyond the request, and returns the last state.
func (p *Process) Buy(ctx context.Context, call control.BuyCall, show func(message.Purchase)) (last message.Purchase, err error) {
	agent, err := p.call()
	if err != nil {
		return last, err
	}
	err = control.Buy.Follow(ctx, agent, call, func(line control.ProgressLine) error {
		last = line.Purchase
		show(last)
		if last.State == "awaiting approval" {
			return control.Approve.Ask(ctx, agent, control.IDCall{ID: call.ID}, nil)
		}
		return nil
	})
	return last, err
}

// end asks a daemon to stop, and kills it if it does not.
func (p *Process) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	timer := time.AfterFunc(2*node.ShutdownTime, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}
