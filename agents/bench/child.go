package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
)

// Child is this program in a process of its own, which takes orders and reports, both as JSON.
type Child struct {
	Log string // its standard error
	cmd *exec.Cmd
	w   io.Closer
	in  *json.Encoder
	out *json.Decoder
}

// StartChild runs a command of this program until ctx ends; the environment's own settings win
// over env.
func StartChild(ctx context.Context, log string, env []string, args ...string) (*Child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env, cmd.Stderr = append(env, os.Environ()...), f
	w, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Child{Log: log, cmd: cmd, w: w, in: json.NewEncoder(w), out: json.NewDecoder(bufio.NewReader(r))}, cmd.Start()
}

// Give gives an order.
func (c *Child) Give(order any) error { return c.in.Encode(order) }

// Report waits for the next report.
func (c *Child) Report(into any) error { return c.out.Decode(into) }

// End ends the orders, and waits for the process.
func (c *Child) End() error { return errors.Join(c.w.Close(), c.cmd.Wait()) }
