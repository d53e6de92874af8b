package queue

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Account is a local account that a job runs as.
type Account struct {
	Name, Home string
	UID, GID   int
	// Credential is how a process becomes it; nil: it is the agent's own.
	Credential *syscall.Credential
}

// AccountOf looks up an account by name; the empty name is the agent's own. Errors: the
// account does not exist, or it is another's and the agent is not root.
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

// UsualPath is the PATH of jobs' programs.
const UsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment is the environment of every program in a job's directory, besides the
// variables of its launch.
func (a Account) Environment(dir string) []string {
	return []string{
		"PATH=" + UsualPath, "HOME=" + a.Home, "USER=" + a.Name, "LOGNAME=" + a.Name, "SHELL=/bin/sh",
		"LANG=C.UTF-8", "TMPDIR=" + filepath.Join(dir, "tmp"),
	}
}

// Own gives directories and files below a job's directory, with their contents, to the
// account. The top of each changes last, so the account cannot enter a tree before all of
// it has changed, and Own leaves a tree alone that the account has already.
func (a Account) Own(dir string, names ...string) error {
	if a.Credential == nil {
		return nil
	}
	top, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(top) //nolint:errcheck // only read
	for _, name := range names {
		if err := a.own(top, name, 0); err != nil {
			return fmt.Errorf("give %s to %s: %w", filepath.Join(dir, name), a.Name, err)
		}
	}
	return nil
}

// maxDepth bounds the directories inside each other that Own enters: each is an open file.
const maxDepth = 300

// own gives away what a name in an open directory is. It changes what it has opened and
// checked, and never finds it by name again: another process may exchange names meanwhile.
func (a Account) own(in int, name string, depth int) error {
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // only read
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case int(st.Uid) == a.UID && depth == 0:
		return nil
	case int(st.Uid) != os.Geteuid() && int(st.Uid) != a.UID:
		return fmt.Errorf("%q belongs to uid %d, neither to the agent nor to the job", name, st.Uid)
	case kind == unix.S_IFDIR:
		if err := a.ownAll(fd, depth); err != nil {
			return err
		}
	case kind != unix.S_IFREG || st.Nlink != 1:
		return fmt.Errorf("%q is neither a directory nor a file with one name", name)
	}
	return unix.Fchownat(fd, "", a.UID, a.GID, unix.AT_EMPTY_PATH)
}

// ownAll gives away the entries of a directory.
func (a Account) ownAll(fd, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("more than %d nested directories", maxDepth)
	}
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(again), "directory")
	defer d.Close() //nolint:errcheck // only read
	names, err := d.Readdirnames(-1)
	for i := 0; i < len(names) && err == nil; i++ {
		err = a.own(int(d.Fd()), names[i], depth+1)
	}
	return err
}

// TakeBack takes a job's working directory back from the account that it ran as, so that
// later jobs of that account cannot enter it. Nothing of the job runs any more.
func TakeBack(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	top, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(top) //nolint:errcheck // only read
	work, err := unix.Openat(top, "work", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("take back %s: %w", filepath.Join(dir, "work"), err)
	}
	defer unix.Close(work) //nolint:errcheck // only read
	return errors.Join(unix.Fchown(work, 0, 0), unix.Fchmod(work, 0o700))
}
