package nat

import (
	"bytes"
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

	"ramp/agents/control"
	"ramp/agents/sim/wan"
)

// party is one agent: a host, a directory, and its daemon while one runs.
type party struct {
	program, kind, dir string
	host               *wan.Host
	daemon             *exec.Cmd
}

func (p *party) name() string { return filepath.Base(p.dir) }

// command runs a command of the agent on its host; what it prints goes to out.
func (p *party) command(ctx context.Context, out io.Writer, args ...string) error {
	c := exec.CommandContext(ctx, p.program, args...)
	var errs bytes.Buffer
	c.Stdout, c.Stderr, c.Dir, c.Env = out, &errs, filepath.Dir(p.dir), append(os.Environ(), "RAMP_DIR="+p.dir, control.SessionEnv+"="+p.dir)
	c.WaitDelay = time.Second // a daemon that it starts may keep its pipes
	if err := p.host.Start(c); err != nil {
		return err
	}
	if err := c.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("ramp %s: %w: %s", strings.Join(args, " "), err, lastLines(errs.String()))
	}
	return nil
}

// lastLines joins the last lines of a command's report.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// serve starts the agent's daemon and waits until it is ready.
func (p *party) serve(ctx context.Context) error {
	log, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c := exec.Command(p.program, p.kind, "serve", "--dir", p.dir)
	c.Stdout, c.Stderr, c.ExtraFiles = log, log, []*os.File{w}
	c.Env = append(os.Environ(), "RAMP_READY_FD=3")
	err = p.host.Start(c)
	_ = w.Close() // the daemon has its own
	if err != nil {
		return err
	}
	p.daemon = c
	defer context.AfterFunc(ctx, func() { _ = r.Close() })()
	if err := json.NewDecoder(r).Decode(new(struct{})); err != nil {
		return fmt.Errorf("ramp %s serve is not ready: %w", p.kind, err)
	}
	return nil
}

// kill ends the daemon as a power failure would.
func (p *party) kill() {
	_ = p.daemon.Process.Signal(syscall.SIGKILL) // it may have ended
	_ = p.daemon.Wait()                          // it was killed
}

// status is what the daemon reports of itself.
func (p *party) status(ctx context.Context) (s control.LiveStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, ok := control.Dial(p.dir)
	if !ok {
		return s, fmt.Errorf("the daemon of %s does not answer", p.dir)
	}
	err = control.Agent.Ask(ctx, c, struct{}{}, &s)
	return s, err
}
