// Package script runs a job by a shell script, wherever a batch system starts it. The
// script gets the job in its arguments and environment, so that no shell parses a
// buyer's words. Wherever and however often the script is started:
//
//   - The program begins once: the script creates a link in the job's directory, and
//     only one can.
//   - The program ends with its slot, with all marked processes on that machine.
//   - A file then has its exit code, its times and its CPU time; it appears
//     atomically.
//
// Watch derives the status of jobs from these files and from the batch system.
package script

import (
	_ "embed" // the script
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

//go:embed job.sh
var text []byte

// Files of a job's directory, besides work, tmp, stdout and stderr. Of these, the job's
// account can write only those in run.
const (
	controlDir = "control"
	scriptFile = "job.sh"
	killFile   = "kill.json"  // the owner killed it
	stateFile  = "state.json" // how it ended; never changed
	runDir     = "run"
	begunLink  = "began" // names the batch job that began it; prevents a second begin
	exitFile   = "exit"
	usedFile   = "used" // so far, in hundredths of a second
)

func control(job message.Job, name string) string { return filepath.Join(job.Dir, controlDir, name) }

// Path is the path of a job's script.
func Path(job message.Job) string { return control(job, scriptFile) }

// Text is the script's text, for a batch system that runs a copy.
func Text() []byte { return slices.Clone(text) }

// Args returns the arguments of a job's script. A job whose end moves by the time for which it
// is suspended has no end that a clock knows: the batch system's limit ends it.
func Args(job message.Job) []string {
	end := job.Slot.End.UnixMilli()
	if job.Stretch {
		end = 0
	}
	return append([]string{job.Dir, fmt.Sprint(end), fmt.Sprint(blocks(job.FileSize)), fmt.Sprint(kib(job.Memory))}, job.Argv...)
}

// Unwanted records that the owner of a job killed it, before the job is ended.
func Unwanted(now time.Time, job message.Job) error {
	return queue.WriteFile(control(job, killFile), now.UTC())
}

// forestalled marks a job that its owner killed before it began.
const forestalled = "killed"

// Forestall keeps a job from ever beginning, and records it as killed. False: it has begun.
func Forestall(now time.Time, job message.Job) (bool, error) {
	err := os.Symlink(forestalled+"#", filepath.Join(job.Dir, runDir, begunLink))
	if errors.Is(err, fs.ErrExist) {
		by, _ := BegunBy(job)
		if by != forestalled {
			return false, nil
		}
		err = nil // done before, but perhaps not recorded
	}
	if err != nil {
		return false, err
	}
	return true, queue.WriteFile(control(job, stateFile), protocol.JobStatus{State: protocol.JobKilled, Ended: now.UTC()})
}

// blocks and kib round sizes up to the units of a shell's limits.
func blocks(bytes int64) int64 { return (bytes + 511) / 512 }
func kib(bytes int64) int64    { return (bytes + 1023) / 1024 }
