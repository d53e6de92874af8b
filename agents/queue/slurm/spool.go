package slurm

import (
	"bytes"
	_ "embed" // the script of a placeholder
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ramp/agents/queue"
	"ramp/protocol/message"
)

//go:embed hold.sh
var holdText []byte

// Files of a spool directory, beside one per job with its words.
const (
	spoolsDir  = "slots" // below the directory of the jobs' files
	holdFile   = "hold.sh"
	jobFile    = "job.sh"
	ordersFile = "orders"
)

// Orders to a placeholder.
const (
	orderRun  = "run"
	orderKill = "kill"
)

// maxOrders bounds the file of a slot's orders, in bytes.
const maxOrders = 1 << 20

// spools owns the spool directories of all slots.
type spools struct {
	root string
	mark queue.Mark
	log  *slog.Logger
}

func (s spools) of(id string) spool { return spool(filepath.Join(s.root, s.mark.Name(id))) }

// clear removes the spool directories of slots that no placeholder holds.
func (s spools) clear(v *view) {
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return // it does not exist yet, or the next slot tries again
	}
	all := append(slices.Clone(v.held), v.late...)
	for _, e := range entries {
		name := e.Name()
		if _, ours := s.mark.ID(name); ours && !slices.ContainsFunc(all, func(h held) bool { return h.name == name }) {
			if err := os.RemoveAll(filepath.Join(s.root, name)); err != nil {
				s.log.Warn("slurm: cannot remove the spool directory of a slot", "slot", strings.TrimPrefix(name, string(s.mark)), "err", err)
			}
		}
	}
}

// spool is the directory from which the placeholder of a slot takes its orders. The
// placeholder's account may read it, and only the agent may write.
type spool string

func (s spool) path(name string) string { return filepath.Join(string(s), name) }

// create makes the directory. Earlier orders stand.
func (s spool) create() error {
	all := filepath.Dir(string(s))
	if err := os.MkdirAll(filepath.Dir(all), 0o711); err != nil {
		return err
	}
	for _, dir := range []string{all, string(s)} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o711); err != nil { // whatever the umask is
			return err
		}
	}
	return errors.Join(s.write(holdFile, holdText), s.add(nil))
}

// write creates a file that others can read.
func (s spool) write(name string, text []byte) error {
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// add appends to the orders, durably. Nothing rewrites them, so that a node never
// reads half of an order over NFS.
func (s spool) add(line []byte) error {
	f, err := os.OpenFile(s.path(ordersFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// orders reads the orders; false: the directory does not exist.
func (s spool) orders() ([]byte, bool, error) {
	info, err := os.Stat(s.path(ordersFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case info.Size() > maxOrders:
		return nil, false, fmt.Errorf("%s has %d bytes, at most %d are read", s.path(ordersFile), info.Size(), maxOrders)
	}
	b, err := os.ReadFile(s.path(ordersFile))
	return b, err == nil, err
}

// line formats an order about a job. Names contain no space, and directories no newline.
func line(verb, name string, job message.Job) string { return verb + " " + name + " " + job.Dir + "\n" }

// has reports whether an order was given, as a whole line.
func has(orders []byte, line string) bool {
	return bytes.HasPrefix(orders, []byte(line)) || bytes.Contains(orders, []byte("\n"+line))
}

// give adds an order once. It first ends a line that a crash cut off.
func (s spool) give(line string) error {
	orders, _, err := s.orders()
	switch {
	case err != nil:
		return err
	case has(orders, line):
		return nil
	case len(orders) > 0 && orders[len(orders)-1] != '\n':
		line = "\n" + line
	}
	return s.add([]byte(line))
}
