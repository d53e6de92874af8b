package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
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
	asUser     = "as-user:" // any, as a local account, with the protections that the machine has
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

// Accepts lists the protections that the machine may lack: those of programs that run as an
// account that the owner has chosen.
func (t SiteTerms) Accepts(driver string) []string {
	switch {
	case t.Account() == "":
		return nil
	case driver == "local":
		return local.Protections()
	}
	return []string{local.UIDs}
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
