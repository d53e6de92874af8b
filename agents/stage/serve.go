package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"ramp/protocol"
)

// Serve answers what an agent asks on an exchange, until that ends.
func (d *Depot) Serve(ctx context.Context, from protocol.AgentID, s Stream) error {
	buffer := make([]byte, chunk)
	for {
		var q request
		if err := readHead(s, &q, restTime); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		g, err := d.cfg.Grant(ctx, from, q.Key)
		if err == nil {
			err = d.do(ctx, from, s, q, g, buffer)
		}
		var r *Refusal
		if errors.As(err, &r) {
			err = no(s, r) // the exchange goes on
		}
		if err != nil {
			return err
		}
	}
}

func (d *Depot) do(ctx context.Context, from protocol.AgentID, s Stream, q request, g Grant, buffer []byte) error {
	switch q.Do {
	case "put":
		return d.put(s, q, g)
	case "get":
		return d.get(s, q, g, buffer)
	case "log":
		return d.log(ctx, from, s, q, g, buffer)
	}
	return refuse(protocol.CodeMalformed, "%q is not done here", clip(q.Do))
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// find is the file of a list that a request names.
func find(list []protocol.StagedFile, path string) (protocol.StagedFile, error) {
	i := slices.IndexFunc(list, func(f protocol.StagedFile) bool { return f.Path == path })
	if i < 0 {
		return protocol.StagedFile{}, refuse(protocol.CodeUnknown, "no file %q was announced", clip(path))
	}
	return list[i], nil
}

// put takes a file that was announced.
func (d *Depot) put(s Stream, q request, g Grant) error {
	f, err := find(g.Inputs, q.Path)
	if err != nil {
		return err
	}
	if !g.Staging {
		return refuse(protocol.CodeExpired, "no more inputs are taken")
	}
	free, err := d.take(g.Job, f.Path)
	if err != nil {
		return err
	}
	defer free()
	if whole, err := d.missing(g.Job, []protocol.StagedFile{f}); err == nil && len(whole) == 0 { // the exchange that brought it broke off
		there := answer{OK: true, Offset: f.Size, Size: f.Size}
		d.arrived(g, f.Path)
		return errors.Join(writeHead(s, there), writeHead(s, there))
	}
	part, err := d.openPart(g.Job, f)
	if err != nil {
		return err
	}
	defer part.file.Close() //nolint:errcheck // it was synced, or is not whole
	if err := d.room(f.Size - part.size); err != nil {
		return err
	}
	if err := writeHead(s, answer{OK: true, Offset: part.size, Size: f.Size}); err != nil {
		return err
	}
	if err := receive(s, part.file, part.hash, part.size, f.Size-part.size); err != nil {
		return err
	}
	if err := d.finish(g.Job, f, part); err != nil {
		return err
	}
	d.arrived(g, f.Path)
	return writeHead(s, answer{OK: true, Offset: f.Size, Size: f.Size})
}

// room refuses a file for which there is none. That is no end: it is tried again.
func (d *Depot) room(need int64) error {
	free, err := d.cfg.Free(d.cfg.Root)
	if free = max(0, free-spare); err == nil && free < need {
		return refuse(protocol.CodeUnavailable, "the disk of the site is full: %d bytes are missing, %d can be written", need, free)
	}
	return nil
}

// freeOf is how many bytes can be written in a directory.
func freeOf(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(min(s.Bavail, math.MaxInt64/uint64(s.Bsize))) * s.Bsize, nil
}

// take keeps two exchanges from writing one file.
func (d *Depot) take(job, path string) (free func(), err error) {
	key := job + "\x00" + path
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[key] {
		return nil, refuse(protocol.CodeBusy, "another exchange brings %q", clip(path))
	}
	d.busy[key] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.busy, key)
	}, nil
}

// part is a file that is not whole yet.
type part struct {
	name string
	file *os.File
	hash digest
	size int64
}

// openPart opens what there is of a file, and reads it: its end is what the rest
// is added to.
func (d *Depot) openPart(job string, f protocol.StagedFile) (*part, error) {
	sum := sha256.Sum256([]byte(f.Path))
	p := &part{name: filepath.Join(d.dir(job), partDir, hex.EncodeToString(sum[:16])), hash: digestOf(f)}
	var err error
	if p.file, err = os.OpenFile(p.name, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	p.size, err = readInto(p.hash, io.LimitReader(p.file, f.Size))
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// finish checks a file that has come whole, and puts it where the job runs.
func (d *Depot) finish(job string, f protocol.StagedFile, p *part) error {
	if !p.hash.right() {
		if err := os.Remove(p.name); err != nil {
			return err
		}
		return refuse(protocol.CodeMismatch, "%q has another %s than was announced", clip(f.Path), p.hash.name)
	}
	mode := os.FileMode(0o600)
	if f.Exec {
		mode = 0o700
	}
	if err := errors.Join(p.file.Chmod(mode), p.file.Sync()); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.dir(job))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	to := filepath.Join(workDir, filepath.FromSlash(f.Path))
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return root.Rename(filepath.Join(partDir, filepath.Base(p.name)), to)
}

// get sends a file that a job has left.
func (d *Depot) get(s Stream, q request, g Grant, buffer []byte) error {
	f, err := find(g.Outputs, q.Path)
	if err != nil {
		return err
	}
	if q.Offset < 0 || q.Offset > f.Size {
		return refuse(protocol.CodeMalformed, "offset %d of a file of %d bytes", q.Offset, f.Size)
	}
	root, err := os.OpenRoot(filepath.Join(d.dir(g.Job), workDir))
	if err != nil {
		return refuse(protocol.CodeUnknown, "the job's files are gone")
	}
	defer root.Close() //nolint:errcheck // it is only read
	file, info, err := openPlain(root, f.Path)
	if err != nil {
		return refuse(protocol.CodeUnknown, "%s", protocol.Words(err.Error()))
	}
	defer file.Close() //nolint:errcheck // it is only read
	if info.Size() != f.Size {
		return refuse(protocol.CodeMismatch, "%q has changed since it was counted", clip(f.Path))
	}
	if _, err := file.Seek(q.Offset, io.SeekStart); err != nil {
		return err
	}
	if err := writeHead(s, answer{OK: true, Offset: q.Offset, Size: f.Size}); err != nil {
		return err
	}
	return steady(s, s, file, f.Size-q.Offset, buffer)
}

// RootError says why a directory cannot hold the files of jobs that run as others:
// they have to pass through every directory above.
func RootError(dir string) error {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err == nil && info.Mode()&0o001 == 0 {
			return fmt.Errorf("%s has mode %s: other accounts cannot pass through it", d, strconv.FormatInt(int64(info.Mode().Perm()), 8))
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
