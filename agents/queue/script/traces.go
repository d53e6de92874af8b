package script

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ramp/protocol/message"
)

// traces is the content of a job's files.
type traces struct {
	begun    bool
	began    time.Time
	unwanted bool // its owner killed it
	done     bool // the fields below are known
	code     int
	asked    bool // by the batch system, to end
	started  time.Time
	stopped  time.Time
	cpu      time.Duration
	soFar    time.Duration // CPU time until a few seconds ago
}

func read(job message.Job) (traces, error) {
	var t traces
	switch _, err := os.Lstat(control(job, killFile)); {
	case err == nil:
		t.unwanted = true
	case !errors.Is(err, fs.ErrNotExist):
		return t, err
	}
	run, err := os.OpenRoot(filepath.Join(job.Dir, runDir))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer run.Close() //nolint:errcheck // only read
	info, err := run.Lstat(begunLink)
	if err != nil {
		return t, nil //nolint:nilerr // it has not begun, or on a machine whose files are not visible here
	}
	t.begun, t.began = true, info.ModTime().UTC()
	t.readExit(contents(run, exitFile))
	t.readUsed(contents(run, usedFile))
	return t, nil
}

// BegunBy is the batch system's number of the job that began; false: none has begun.
func BegunBy(job message.Job) (string, bool) {
	run, err := os.OpenRoot(filepath.Join(job.Dir, runDir))
	if err != nil {
		return "", false
	}
	defer run.Close() //nolint:errcheck // only read
	target, err := run.Readlink(begunLink)
	if err != nil {
		return "", false
	}
	id, _, _ := strings.Cut(target, "#")
	return id, true
}

// Start records how a job began, and whether it has ended.
type Start struct {
	At    time.Time
	Over  bool
	Ended time.Time // zero: it has not
	// Cut: something asked it to end, but not its owner.
	Cut bool
}

// Started reads how a job began; false: it has not.
func Started(job message.Job) (Start, bool) {
	_, ok := BegunBy(job)
	t, err := read(job)
	if !ok || err != nil || !t.begun {
		return Start{}, false
	}
	return Start{At: t.began, Over: t.done, Ended: t.stopped, Cut: t.done && t.asked && !t.unwanted}, true
}

// maxExit bounds the size of a job's file, in bytes.
const maxExit = 1 << 10

// contents reads a file that the script wrote. The job's account could have changed it,
// so an impossible file counts as missing.
func contents(run *os.Root, name string) string {
	f, err := run.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, maxExit))
	if err != nil {
		return ""
	}
	return string(b)
}

// readUsed reads a number of hundredths of a second.
func (t *traces) readUsed(text string) {
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "\n"), 10, 40)
	if err == nil && strings.HasSuffix(text, "\n") {
		t.soFar = time.Duration(n) * 10 * time.Millisecond
	}
}

// readExit reads CODE ASKED STARTED ENDED, and then the output of the shell's times(1)
// for itself and for its waited-for children.
func (t *traces) readExit(text string) {
	lines := strings.Split(text, "\n")
	if len(lines) < 3 {
		return
	}
	head, times := strings.Fields(lines[0]), strings.Fields(lines[2])
	if len(head) != 4 || len(times) != 2 {
		return
	}
	code, err1 := strconv.ParseUint(head[0], 10, 8)
	started, err2 := strconv.ParseUint(head[2], 10, 52)
	ended, err3 := strconv.ParseUint(head[3], 10, 52)
	user, err4 := clocked(times[0])
	system, err5 := clocked(times[1])
	if errors.Join(err1, err2, err3, err4, err5) != nil || ended < started {
		return
	}
	t.done, t.code, t.asked, t.cpu = true, int(code), head[1] == "1", user+system
	t.started, t.stopped = time.UnixMilli(int64(started)).UTC(), time.UnixMilli(int64(ended)).UTC()
}

// clocked reads MINUTESmSECONDSs, as the shell's times(1) prints it.
func clocked(s string) (time.Duration, error) {
	minutes, rest, ok := strings.Cut(s, "m")
	seconds, tail := strings.CutSuffix(rest, "s")
	m, err1 := strconv.ParseUint(minutes, 10, 24)
	sec, err2 := strconv.ParseFloat(strings.Replace(seconds, ",", ".", 1), 64)
	if !ok || !tail || err1 != nil || err2 != nil || !(sec >= 0 && sec < 60) {
		return 0, fmt.Errorf("%.20q is not a time", s)
	}
	return time.Duration(m)*time.Minute + time.Duration(sec*float64(time.Second)), nil
}
