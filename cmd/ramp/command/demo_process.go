package command

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
)

// process is one agent of the demonstration: a daemon of its own.
type process struct {
	name string
	dir  string
	cmd  *exec.Cmd
	ready
}

// startTime is how long an agent may take to be ready.
const startTime = 30 * time.Second

// spawn starts a daemon of this program. Its log goes to agent.log in its
// directory. Unless keep is set it ends with this process, however that ends.
func spawn(dir string, keep bool, env []string, args ...string) (*process, *os.File, error) {
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
	p := &process{name: filepath.Base(dir), dir: dir, cmd: exec.Command(exe, args...)}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.ExtraFiles = []*os.File{w}
	p.cmd.Env = append(append(os.Environ(), readyEnv+"=3"), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !keep {
		p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return p, r, nil
}

// await waits until the daemon has said that it is ready.
func (p *process) await(ctx context.Context, r *os.File) error {
	defer r.Close()
	if err := r.SetReadDeadline(time.Now().Add(startTime)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) }) // wakes the read below
	defer stop()
	err := json.NewDecoder(r).Decode(&p.ready)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF):
		return fail(exitFailed, "its log is "+filepath.Join(p.dir, "agent.log"), "%s did not start: %s", p.name, p.lastLine())
	case err != nil:
		return fail(exitFailed, "its log is "+filepath.Join(p.dir, "agent.log"), "%s is not ready after %s", p.name, startTime)
	}
	return nil
}

func (p *process) lastLine() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "agent.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// call reaches the daemon.
func (p *process) call() (*caller, error) {
	c, ok := dialDaemon(p.dir)
	if !ok {
		return nil, fail(exitFailed, "its log is "+filepath.Join(p.dir, "agent.log"), "%s does not answer", p.name)
	}
	return c, nil
}

// end asks a daemon to leave, and ends it if it does not.
func (p *process) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	timer := time.AfterFunc(2*shutdownTime, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
