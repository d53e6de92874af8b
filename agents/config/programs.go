package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ramp/agents/exit"
	"ramp/agents/queue"
	"ramp/agents/queue/local"
	"ramp/agents/stage"
)

// Programs that buyers of a new site may run in sold slots.
const (
	Contained  = "contained" // any, kept from the machine and from each other
	NoPrograms = "no"
	asUser     = "as-user:" // any, as a local account, with the protections that the machine has now
)

// ProgramsHelp explains the choice.
const ProgramsHelp = "contained (driver local), as-user:ACCOUNT, or no"

// rootUIDs are those of jobs where the agent is root and no range is set aside for it.
const rootUIDs = "100000-100999"

// CheckPrograms refuses programs that a driver cannot run.
func (t SiteTerms) CheckPrograms(driver string) error {
	switch account := t.Account(); {
	case account != "":
		if _, err := queue.AccountOf(account); err != nil {
			return exit.Fail(exit.Usage, "", "--programs: %w", err)
		}
		return nil
	case t.Programs == Contained && driver != "local":
		return exit.Fail(exit.Usage, "--programs as-user:ACCOUNT", "--programs contained: only the driver local contains programs")
	case t.Programs == "" || t.Programs == NoPrograms || t.Programs == Contained:
		return nil
	}
	return exit.Fail(exit.Usage, "", "--programs %q: want %s", t.Programs, ProgramsHelp)
}

// RunsPrograms reports whether buyers may run programs.
func (t SiteTerms) RunsPrograms() bool { return t.Programs == Contained || t.Account() != "" }

// Account is the local account of programs that run as one.
func (t SiteTerms) Account() string {
	account, _ := strings.CutPrefix(t.Programs, asUser)
	if account == t.Programs {
		return ""
	}
	return account
}

// Accepts lists the protections that the machine may lack: those that it lacks today, if the owner
// has chosen an account for programs. Nobody accepts by that that programs read the agent's key.
func (t SiteTerms) Accepts(driver string) (list []string) {
	own := t.Account() == AccountName()
	switch {
	case t.Account() == "" || driver == "local" && own && lacks(t.Lacks, local.Namespaces):
		return nil
	case driver == "local":
		for _, l := range t.Lacks {
			list = append(list, l.Protection)
		}
		return list
	case own: // there is no other way to run them
		return []string{local.UIDs}
	}
	return nil
}

// Inspect notes what this machine lacks to contain programs, if they are to run.
func (t *SiteTerms) Inspect(driver string) {
	if !t.RunsPrograms() || driver != "local" {
		return
	}
	var k local.Containment
	if k.First, k.Last = subordinate(); t.UIDs() != "" {
		k.First, k.Last, _ = uidRange(t.UIDs())
	}
	_, t.Lacks = k.Try()
}

func lacks(list []local.Lack, protection string) bool {
	return slices.ContainsFunc(list, func(l local.Lack) bool { return l.Protection == protection })
}

// Exposed says what programs can do here beyond what they should, one sentence a line.
func (t SiteTerms) Exposed(driver string) (list []string) {
	accepts := t.Accepts(driver)
	switch {
	case !t.RunsPrograms() || driver != "local" && len(accepts) == 0:
		return nil
	case driver != "local":
		return []string{"programs of buyers run as this agent's own account, and can read its key: another account is safer"}
	}
	for _, l := range t.Lacks {
		if len(accepts) == 0 {
			return []string{"programs of buyers are refused until this machine can contain them: " + l.Why + " (docs/JOBS.md, Containment)"}
		}
		list = append(list, "programs of buyers run without the protection "+l.Protection+" (resource.jobs.accept): "+l.Why)
	}
	return list
}

// machineJobs is where jobs' files are if other accounts cannot enter the agent's directory.
const machineJobs = "/var/lib/ramp-jobs"

// JobsOf is the directory of the jobs' files of an agent in dir, an absolute path; "": below dir. An agent of root
// has them run as other accounts.
func (t SiteTerms) JobsOf(driver, dir string) string {
	others := t.Programs == Contained || t.Account() != "" && t.Account() != "root"
	if os.Geteuid() != 0 || driver != "local" || !others {
		return ""
	}
	if _, err := os.Stat(dir); err == nil && stage.RootError(dir) == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(machineJobs, filepath.Base(dir)+"-"+hex.EncodeToString(sum[:4]))
}

// UIDs is the range of uids of contained jobs, where the agent's account needs one.
func (t SiteTerms) UIDs() string {
	if first, _ := subordinate(); t.Programs == Contained && os.Geteuid() == 0 && first == 0 {
		return rootUIDs
	}
	return ""
}
