package queue

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Account is a local account that a job runs as.
type Account struct {
	Name, Home string
	UID, GID   int
	// Credential is how a process becomes it; nil: it is the agent's own.
	Credential *syscall.Credential
}

// AccountOf looks an account up by name; no name is the agent's own. Errors: it is
// not there, or the agent is not root and it is another's.
func AccountOf(name string) (Account, error) {
	self, err := user.Current()
	if err != nil {
		return Account{}, err
	}
	u := self
	if name != "" {
		if u, err = user.Lookup(name); err != nil {
			return Account{}, err
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	a := Account{Name: u.Username, Home: u.HomeDir, UID: uid, GID: gid}
	if u.Uid == self.Uid || err1 != nil || err2 != nil {
		return a, errors.Join(err1, err2)
	}
	if os.Geteuid() != 0 {
		return a, fmt.Errorf("account %s: the agent is %s, and only root can run programs for others", name, self.Username)
	}
	groups, err := u.GroupIds()
	a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: numbers(groups)}
	return a, err
}

func numbers(ids []string) []uint32 {
	var list []uint32
	for _, s := range ids {
		if n, err := strconv.ParseUint(s, 10, 32); err == nil {
			list = append(list, uint32(n))
		}
	}
	return list
}

// UsualPath is where programs of jobs are looked for.
const UsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment is what a program of a job in a directory is told beside what
// belongs to its launch.
func (a Account) Environment(dir string) []string {
	return []string{
		"PATH=" + UsualPath, "HOME=" + a.Home, "USER=" + a.Name, "LOGNAME=" + a.Name, "SHELL=/bin/sh",
		"LANG=C.UTF-8", "TMPDIR=" + filepath.Join(dir, "tmp"),
	}
}

// Own gives directories below a job's, with all that is in them, to the account,
// without following links.
func (a Account) Own(dir string, names ...string) error {
	if a.Credential == nil {
		return nil
	}
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, a.UID, a.GID)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
