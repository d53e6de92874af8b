package script

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Prepare creates the files for a job's script, unless the batch system knows the job
// or it has begun: then there is nothing to submit. If the batch system accepted a job
// without acknowledging it, the script makes sure that it begins once.
func (w *Watch) Prepare(now time.Time, job message.Job, ask Ask) (who queue.Account, known bool, why *protocol.Reason) {
	if !filepath.IsAbs(job.Dir) || strings.ContainsAny(job.Dir, "\n\x00") {
		return who, false, &protocol.Reason{Code: protocol.CodeMalformed, Note: fmt.Sprintf("the job's directory %q is not an absolute path", job.Dir)}
	}
	w.Soon()
	all, err := w.Statuses(now, []message.Job{job}, ask)
	if err != nil {
		return who, false, queue.Unavailable(err)
	}
	if _, known := all[job.ID]; known {
		return who, true, nil
	}
	if who, err = queue.AccountOf(job.User); err != nil {
		return who, false, &protocol.Reason{Code: protocol.CodeForbidden, Note: queue.OneLine([]byte(err.Error()))}
	}
	who.Home = cmp.Or(job.Home, who.Home)
	if err := layOut(job, who); err != nil {
		return who, false, queue.Unavailable(err)
	}
	w.Soon()
	return who, false, nil
}

// layOut creates the files for the script. The job's account can change only what it owns.
func layOut(job message.Job, who queue.Account) error {
	var failures []error
	for _, d := range []struct {
		name string
		mode os.FileMode
	}{{controlDir, 0o700}, {"work", 0o700}, {"tmp", 0o700}, {runDir, 0o700}} {
		failures = append(failures, os.MkdirAll(filepath.Join(job.Dir, d.name), d.mode))
	}
	for _, name := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(filepath.Join(job.Dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			err = f.Close()
		}
		failures = append(failures, err)
	}
	failures = append(failures, os.WriteFile(control(job, scriptFile), text, 0o600))
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return who.Own(job.Dir, "work", "tmp", runDir, "stdout", "stderr")
}
