// Package script runs a job by a script of a shell, wherever a batch system lets it
// run. What a job is comes to it in its arguments and its environment, so that no
// shell reads a word of a buyer. Wherever and however often the script is started:
//
//   - The program begins once: the script makes a link in the job's directory, and
//     of several one wins.
//   - It ends with its slot, with what bears its mark on that machine.
//   - Its exit code, its times and its CPU time are in a file then, whole or not at
//     all.
//
// Watch tells how jobs stand from these files and from what a batch system says.
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

// Files of a job's directory beside work, tmp, stdout and stderr. The account of
// the job can write what is in run, and nothing else of these.
const (
	controlDir = "control"
	scriptFile = "job.sh"
	killFile   = "kill.json"  // the owner wanted it to end
	stateFile  = "state.json" // how it ended, for ever
	runDir     = "run"
	begunLink  = "began" // points at who began; what has it never begins again
	exitFile   = "exit"
	usedFile   = "used" // so far, in hundredths of a second
)

func control(job message.Job, name string) string { return filepath.Join(job.Dir, controlDir, name) }

// Path is the script of a job.
func Path(job message.Job) string { return control(job, scriptFile) }

// Text is the script, for a batch system that runs it from elsewhere.
func Text() []byte { return slices.Clone(text) }

// Args are the arguments of a job's script.
func Args(job message.Job) []string {
	return append([]string{job.Dir, fmt.Sprint(job.Slot.End.UnixMilli()), fmt.Sprint(blocks(job.FileSize)), fmt.Sprint(kib(job.Memory))}, job.Argv...)
}

// Unwanted writes down that the owner of a job wants it to end, before it is ended.
func Unwanted(now time.Time, job message.Job) error {
	return queue.WriteFile(control(job, killFile), now.UTC())
}

// forestalled is who began a job that its owner killed first.
const forestalled = "killed"

// Forestall keeps a job from ever beginning, if it has not begun: then it counts as
// killed, and is written down as that. False: it has begun.
func Forestall(now time.Time, job message.Job) (bool, error) {
	err := os.Symlink(forestalled+"#", filepath.Join(job.Dir, runDir, begunLink))
	if errors.Is(err, fs.ErrExist) {
		by, _ := BegunBy(job)
		if by != forestalled {
			return false, nil
		}
		err = nil // it was done before, and perhaps not written down
	}
	if err != nil {
		return false, err
	}
	return true, queue.WriteFile(control(job, stateFile), protocol.JobStatus{State: protocol.JobKilled, Ended: now.UTC()})
}

// blocks and kib are sizes as limits of a shell count them, rounded up.
func blocks(bytes int64) int64 { return (bytes + 511) / 512 }
func kib(bytes int64) int64    { return (bytes + 1023) / 1024 }
