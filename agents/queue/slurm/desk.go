package slurm

import (
	"bytes"
	_ "embed" // what a placeholder runs
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ramp/protocol/message"
)

//go:embed hold.sh
var holdText []byte

// Files of a desk, beside one per job with its words.
const (
	desksDir   = "slots" // below the directory of the jobs' files
	holdFile   = "hold.sh"
	jobFile    = "job.sh"
	ordersFile = "orders"
)

// Orders to a placeholder.
const (
	orderRun  = "run"
	orderKill = "kill"
)

// maxOrders bounds what is read of the orders of a slot, in bytes.
const maxOrders = 1 << 20

// desk is the directory over which the placeholder of a slot is told what to run. The
// placeholder's account can read it, and nobody but the agent can write.
type desk string

func (b *batch) desk(id string) desk {
	return desk(filepath.Join(b.cfg.Jobs, desksDir, b.mark.Name(id)))
}

func (d desk) path(name string) string { return filepath.Join(string(d), name) }

// lay makes a desk. Orders that were given before stand.
func (d desk) lay() error {
	all := filepath.Dir(string(d))
	if err := os.MkdirAll(filepath.Dir(all), 0o711); err != nil {
		return err
	}
	for _, dir := range []string{all, string(d)} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o711); err != nil { // whatever the umask is
			return err
		}
	}
	return errors.Join(d.write(holdFile, holdText), d.add(nil))
}

// write puts a file there that others can read.
func (d desk) write(name string, text []byte) error {
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// add adds to the orders, durably. They are never written anew, so that a node sees
// them as they are.
func (d desk) add(line []byte) error {
	f, err := os.OpenFile(d.path(ordersFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// orders is what stands on the desk; false: there is none.
func (d desk) orders() ([]byte, bool, error) {
	info, err := os.Stat(d.path(ordersFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case info.Size() > maxOrders:
		return nil, false, fmt.Errorf("the orders of a slot have %d bytes, at most %d", info.Size(), maxOrders)
	}
	b, err := os.ReadFile(d.path(ordersFile))
	return b, err == nil, err
}

// line is an order about a job. No name has a space, and no directory the end of a
// line.
func line(verb, name string, job message.Job) string {
	return verb + " " + name + " " + job.Dir + "\n"
}

// has reports whether an order was given, as a whole line.
func has(orders []byte, line string) bool {
	return bytes.HasPrefix(orders, []byte(line)) || bytes.Contains(orders, []byte("\n"+line))
}

// give gives an order once. What a crash has left of a line is ended first.
func (d desk) give(line string) error {
	orders, _, err := d.orders()
	switch {
	case err != nil:
		return err
	case has(orders, line):
		return nil
	case len(orders) > 0 && orders[len(orders)-1] != '\n':
		line = "\n" + line
	}
	return d.add([]byte(line))
}

// clearDesks removes the desks of slots that no placeholder holds.
func (b *batch) clearDesks() {
	root := filepath.Join(b.cfg.Jobs, desksDir)
	entries, err := os.ReadDir(root)
	if err != nil {
		return // there is none yet, or it is tried again at the next slot
	}
	all := append(slices.Clone(b.last.held), b.last.late...)
	for _, e := range entries {
		name := e.Name()
		if _, ours := b.mark.ID(name); ours && !slices.ContainsFunc(all, func(h held) bool { return h.name == name }) {
			if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
				b.log.Warn("slurm: what a placeholder was told cannot be removed", "slot", strings.TrimPrefix(name, string(b.mark)), "err", err)
			}
		}
	}
}
