// Package background starts and stops the daemon of a user agent that no service manager runs.
//
// A command that needs the agent and finds no daemon starts one. The daemon has a session of
// its own, so it outlives the command and its terminal, and it writes a log of bounded size
// into the agent's directory. Of several commands that start it at once, one does and the
// others wait for it.
package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/boltfile"
	"ramp/protocol"
)

// LogName is the daemon's log in the agent's directory.
const LogName = "daemon.log"

// StartTime bounds the start of a daemon; StopTime its end, with what it completes first.
const (
	StartTime = 60 * time.Second
	StopTime  = 30 * time.Second
	pause     = 20 * time.Millisecond // between two looks at a lock
)

// Start returns a client of the directory's daemon, and starts it if it does not run.
func Start(ctx context.Context, dir string) (*control.Client, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, exit.WithCode(exit.Failed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, StartTime)
	defer cancel()
	log, err := lockLog(ctx, filepath.Join(dir, LogName))
	if err != nil {
		return nil, err
	}
	defer freeLog(log)
	if d, ok := control.Meet(dir); ok { // another command has started it
		return d, nil
	}
	if err := launch(ctx, dir, log); err != nil {
		return meetOther(ctx, dir, err)
	}
	if d, ok := control.Meet(dir); ok {
		return d, nil
	}
	return nil, exit.Fail(exit.Failed, "see "+log.Name(), "the agent's daemon has started, but does not answer")
}

// meetOther waits while another process has the agent's journal: a daemon that has not come to
// answer yet, because the command that started it was killed. Without one, failed stands.
func meetOther(ctx context.Context, dir string, failed error) (*control.Client, error) {
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return nil, failed
	}
	for {
		if d, ok := control.Meet(dir); ok {
			return d, nil
		}
		if who, err := boltfile.Holder(cfg.DataFile()); err != nil || who == nil {
			return nil, failed
		}
		if !agents.Pause(ctx, pause) {
			return nil, failed
		}
	}
}

// lockLog opens the log and locks it while a daemon is being started.
func lockLog(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, exit.Fail(exit.Failed, exit.PlaceHint(err), "log of the daemon: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(exit.Fail(exit.Failed, "", "lock %s: %w", path, err), f.Close())
		}
		if !agents.Pause(ctx, pause) {
			return nil, errors.Join(ctx.Err(), f.Close())
		}
	}
}

// freeLog unlocks before it closes: a child that has forked but not yet called exec would
// keep the lock.
func freeLog(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

// launch starts the daemon and waits until it is ready or has ended.
func launch(ctx context.Context, dir string, log *os.File) error {
	began, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return exit.Fail(exit.Failed, "", "log of the daemon: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	defer r.Close()
	c, err := command(dir, log.Name(), w)
	if err == nil {
		err = c.Start()
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return exit.Fail(exit.Failed, "", "start the agent's daemon: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) })()
	var told json.RawMessage
	switch err := json.NewDecoder(r).Decode(&told); {
	case err == nil:
		return c.Process.Release()
	case ctx.Err() != nil: // it starts on, for the next command
		return errors.Join(ctx.Err(), c.Process.Release())
	}
	return failure(c.Wait(), log, began)
}

// command is the command of a daemon: this program, under the name by which it was called.
func command(dir, log string, w *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, "user", "serve", "--dir", dir, "--log", log)
	c.Args[0] = os.Args[0]
	c.Dir = dir
	notOurs := func(v string) bool { // a service manager waits for this command, not for the daemon
		return strings.HasPrefix(v, ReadyEnv+"=") || strings.HasPrefix(v, "NOTIFY_SOCKET=")
	}
	c.Env = append(slices.DeleteFunc(os.Environ(), notOurs), ReadyEnv+"=3")
	c.ExtraFiles = []*os.File{w}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c, nil
}

// failure explains why a daemon ended before it was ready: by what it printed last, with its
// exit code.
func failure(err error, log *os.File, began int64) error {
	code := exit.Failed
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 {
		code = ended.ExitCode()
	}
	b, _ := io.ReadAll(io.NewSectionReader(log, began, maxLog))
	why, hint := "it ended without a message", "see "+log.Name()
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if s, ok := strings.CutPrefix(line, "ramp: "); ok {
			why = s
		}
		if s, ok := strings.CutPrefix(line, "hint: "); ok {
			hint = s
		}
	}
	return exit.Fail(code, hint, "the agent's daemon did not start: %s", protocol.Harmless(why))
}

// StoppedWords say what Stop has done.
func StoppedWords(pid int) string {
	if pid == 0 {
		return "No daemon runs."
	}
	return fmt.Sprintf("Stopped the daemon (pid %d).", pid)
}

// Stop ends the daemon of a directory and waits until it has ended. It returns its process
// ID, or 0 if none runs.
func Stop(ctx context.Context, dir string) (pid int, err error) {
	cfg, err := config.Read(filepath.Join(dir, config.Name))
	if err != nil {
		return 0, err
	}
	if _, ok := control.Meet(dir); !ok {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, StopTime)
	defer cancel()
	for {
		who, err := boltfile.Holder(cfg.DataFile())
		switch {
		case err != nil:
			return pid, exit.Fail(exit.Failed, "", "%w", err)
		case who == nil || who.PID == 0 || pid != 0 && who.PID != pid:
			return pid, nil
		case pid == 0:
			if err := syscall.Kill(who.PID, syscall.SIGTERM); err != nil {
				return 0, exit.Fail(exit.Failed, "does it belong to another account?", "stop process %d: %w", who.PID, err)
			}
			pid = who.PID
		}
		if !agents.Pause(ctx, pause) {
			return pid, exit.Fail(exit.Failed, "'kill -9' ends it; nothing is lost", "process %d still runs", pid)
		}
	}
}

// ReadyEnv names a file descriptor to which a daemon writes one JSON value when it is
// ready, for the process that started it.
const ReadyEnv = "RAMP_READY_FD"

// Ready is that value.
type Ready struct {
	Agent     protocol.AgentID `json:"agent"`
	Addresses []string         `json:"addresses"`
}

// TellReady writes r to the descriptor of ReadyEnv, if there is one, and notifies systemd.
func TellReady(r Ready) error {
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // without it systemd reports that the start timed out
	v := os.Getenv(ReadyEnv)
	if v == "" {
		return nil
	}
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return exit.Fail(exit.Usage, "", "%s=%q: want the number of an open file descriptor above 2", ReadyEnv, v)
	}
	f := os.NewFile(uintptr(fd), "ready")
	if f == nil {
		return exit.Fail(exit.Usage, "", "%s=%q is not open", ReadyEnv, v)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(r); err != nil && !errors.Is(err, syscall.EPIPE) { // whoever started it may be gone
		return fmt.Errorf("report that the daemon is ready: %w", err)
	}
	return nil
}
