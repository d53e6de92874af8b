package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Times that only a fault reaches: nothing waits for them when all is well.
const (
	readyTime = 60 * time.Second
	leaveTime = 30 * time.Second
	pollPause = 20 * time.Millisecond // between two looks at a condition, at first
	pollMost  = 300 * time.Millisecond
)

// daemon is a ramp process in the background.
type daemon struct {
	cmd   *exec.Cmd
	log   string
	ready struct {
		Agent     string   `json:"agent"`
		Addresses []string `json:"addresses"`
	}
	ended chan struct{}
	err   error // once it has ended
}

// startDaemon runs ramp with args until it says that it is ready. It ends with
// the tests at the latest.
func startDaemon(log string, env []string, args ...string) (*daemon, error) {
	return startProgram(log, env, append([]string{"ramp"}, args...)...)
}

// startProgram runs a program that ends up as ramp, likewise.
func startProgram(log string, env []string, args ...string) (*daemon, error) {
	d, r, err := launch(log, env, args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := r.SetReadDeadline(time.Now().Add(readyTime)); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(r).Decode(&d.ready); err != nil {
		d.kill()
		return nil, fmt.Errorf("%s is not ready: %w\n%s", strings.Join(args, " "), err, d.lastLines())
	}
	return d, nil
}

// launch is startProgram that does not wait: on ready it will say that it is.
func launch(log string, env []string, args ...string) (d *daemon, ready *os.File, err error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer out.Close()
	ready, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	d = &daemon{cmd: exec.Command(args[0], args[1:]...), log: log, ended: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = out, out
	d.cmd.Env = append(append(os.Environ(), env...), "RAMP_READY_FD=3")
	d.cmd.ExtraFiles = []*os.File{w}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, ready.Close())
	}
	go func() { defer close(d.ended); d.err = d.cmd.Wait() }()
	return d, ready, nil
}

func (d *daemon) lastLines() string {
	b, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4000):])
}

// endDaemonsBelow ends the daemons that commands have started for agents below a
// directory of a test.
func endDaemonsBelow(dir string) {
	endDaemons(func(_ string, words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, dir+"/") })
	})
}

// endDaemons ends the daemons of a program and command line.
func endDaemons(which func(program string, words []string) bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		b, _ := os.ReadFile(file) // the process may have ended
		words := strings.Split(string(b), "\x00")
		program, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && slices.Contains(words, "serve") && which(program, words) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// kill ends the process as a crash would.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.ended
}

// stop asks the process to leave, and says how it did.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-d.ended:
		return d.err
	case <-time.After(leaveTime):
		d.kill()
		return fmt.Errorf("it did not leave within %s\n%s", leaveTime, d.lastLines())
	}
}

// client calls the control socket in an agent's directory; it waits no longer than a test
// does.
func client(dir string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(dir, "control.sock"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: untilTime}
}

// call makes one call to the agent of a directory and reads its answer into v.
func call(ctx context.Context, dir, path string, body, v any) error {
	resp, err := post(ctx, dir, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

func post(ctx context.Context, dir, path string, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	resp, err := client(dir).Do(req)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	return nil, errors.Join(fmt.Errorf("%s: %d %s", path, resp.StatusCode, bytes.TrimSpace(said)), err)
}

// until looks again and again until done says so, or the time is over.
func until(limit time.Duration, done func() (bool, error)) error {
	begun := time.Now()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		waited := time.Since(begun)
		if waited > limit {
			return errors.Join(fmt.Errorf("not within %s", limit), err)
		}
		<-time.After(min(max(pollPause, waited/8), pollMost)) // a look is often a process
	}
}
