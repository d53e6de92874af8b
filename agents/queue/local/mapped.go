package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"ramp/agents/queue"
	"ramp/protocol/message"
)

// mapped lets jobs of an agent that is not root have the uids of a range, and says why
// that fails: newuidmap refuses what /etc/subuid and /etc/subgid do not give the agent.
func (p *plan) mapped(first, last int) string {
	full := *p
	full.First, full.Last, full.Mapped, full.Read = first, last, true, nil
	why := full.try()
	if why == "" {
		p.First, p.Last, p.Mapped = first, last, true
	}
	return why
}

// enter is the beginning of a command in a user namespace with the uids of the range,
// each under its own number, and the agent as root; nil: none is needed. The namespace
// belongs to the agent, who can kill all that runs in it.
func (p plan) enter() []string {
	if !p.Mapped || os.Geteuid() == 0 {
		return nil
	}
	count := p.Last - p.First + 1
	return []string{
		"unshare", "--user", "--map-root-user",
		fmt.Sprintf("--map-users=%d,%d,%d", p.First, p.First, count), fmt.Sprintf("--map-groups=%d,%d,%d", p.First, p.First, count), "--",
	}
}

// credential is how bubblewrap becomes an account. Where the range is mapped, it stays
// root of the namespace, and the program becomes the account.
func (p plan) credential(who queue.Account) *syscall.Credential {
	if p.Mapped {
		return nil
	}
	return who.Credential
}

// become is the beginning of a command by which root of the namespace becomes an account, and
// loses all privileges.
func (p plan) become(who queue.Account) []string {
	if !p.Mapped {
		return nil
	}
	return []string{"setpriv", fmt.Sprintf("--reuid=%d", who.UID), fmt.Sprintf("--regid=%d", who.GID), "--clear-groups", "--inh-caps=-all"}
}

// takeAllBack gives the agent all that a job has left, whatever its modes. Nothing of the
// job runs any more.
func (p plan) takeAllBack(job message.Job) error {
	work := filepath.Join(job.Dir, workDir)
	var errs []error
	for _, argv := range [][]string{
		{"chown", "-hR", "0:0", "--", work}, {"chmod", "-R", "u+rwX", "--", work}, {"chmod", "go-rwx", "--", work},
		{"rm", "-rf", "--", filepath.Join(job.Dir, tmpDir)},
	} {
		argv = append(p.enter(), argv...)
		if said, err := exec.CommandContext(context.Background(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w: %s", argv[0], err, queue.OneLine(said)))
		}
	}
	return errors.Join(errs...)
}
