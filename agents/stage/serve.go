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

// Serve answers requests on an exchange until the exchange ends. It calls refused after
// each request that it refuses, and ends the exchange if that fails.
func (d *Depot) Serve(ctx context.Context, from protocol.AgentID, s Stream, refused func() error) error {
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
			if err = no(s, r); err == nil {
				err = refused() // nil: the exchange continues
			}
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
	return refuse(protocol.CodeMalformed, "%q is not done here", protocol.Clip(q.Do))
}

// find looks up the file that a request names.
func find(list []protocol.StagedFile, path string) (protocol.StagedFile, error) {
	i := slices.IndexFunc(list, func(f protocol.StagedFile) bool { return f.Path == path })
	if i < 0 {
		return protocol.StagedFile{}, refuse(protocol.CodeUnknown, "no file %q was announced", protocol.Clip(path))
	}
	return list[i], nil
}

func (d *Depot) put(s Stream, q request, g Grant) error {
	f, err := find(g.Inputs, q.Path)
	if err != nil {
		return err
	}
	if !g.Staging {
		return refuse(protocol.CodeExpired, "the launch takes no more inputs")
	}
	free, err := d.take(g.Job, f.Path)
	if err != nil {
		return err
	}
	defer free()
	if whole, err := d.missing(g.Job, []protocol.StagedFile{f}); err == nil && len(whole) == 0 { // an interrupted exchange brought it
		there := answer{OK: true, Offset: f.Size, Size: f.Size}
		d.arrived(g, f.Path)
		return errors.Join(writeHead(s, there), writeHead(s, there))
	}
	part, err := d.openPart(g.Job, f)
	if err != nil {
		return err
	}
	defer part.file.Close() //nolint:errcheck // synced, or incomplete
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

// room refuses a file that does not fit on the disk. The user tries again.
func (d *Depot) room(need int64) error {
	free, err := d.cfg.Free(d.cfg.Root)
	if free = max(0, free-spare); err == nil && free < need {
		return refuse(protocol.CodeUnavailable, "the disk of the site is full: the file needs %d bytes, %d are free", need, free)
	}
	return nil
}

// freeOf is the free space of a directory in bytes.
func freeOf(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(min(s.Bavail, math.MaxInt64/uint64(s.Bsize))) * s.Bsize, nil
}

// take prevents two exchanges from writing one file.
func (d *Depot) take(job, path string) (free func(), err error) {
	key := job + "\x00" + path
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[key] {
		return nil, refuse(protocol.CodeBusy, "another exchange is sending %q", protocol.Clip(path))
	}
	d.busy[key] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.busy, key)
	}, nil
}

// part is an incomplete file.
type part struct {
	name string
	file *os.File
	hash digest
	size int64
}

// openPart opens an incomplete file and hashes its part, which ends where the rest is to be added.
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

// finish checks a complete file, and moves it to the working directory.
func (d *Depot) finish(job string, f protocol.StagedFile, p *part) error {
	if !p.hash.right() {
		if err := os.Remove(p.name); err != nil {
			return err
		}
		return refuse(protocol.CodeMismatch, "%q has another %s than was announced", protocol.Clip(f.Path), p.hash.name)
	}
	mode := os.FileMode(0o600)
	if f.Exec {
		mode = 0o700
	}
	if err := errors.Join(p.file.Chmod(mode), p.file.Sync()); err != nil {
		return errors.Join(err, os.Remove(p.name)) // what was lost would not fail the next flush
	}
	root, err := os.OpenRoot(d.dir(job))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is buffered
	to := filepath.Join(workDir, filepath.FromSlash(f.Path))
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return root.Rename(filepath.Join(partDir, filepath.Base(p.name)), to)
}

func (d *Depot) get(s Stream, q request, g Grant, buffer []byte) error {
	f, err := find(g.Outputs, q.Path)
	if err != nil {
		return err
	}
	if q.Offset < 0 || q.Offset > f.Size {
		return refuse(protocol.CodeMalformed, "offset %d: want 0..%d, the size of the file", q.Offset, f.Size)
	}
	root, err := os.OpenRoot(filepath.Join(d.dir(g.Job), workDir))
	if err != nil {
		return refuse(protocol.CodeUnknown, "the job's files have been removed")
	}
	defer root.Close() //nolint:errcheck // only read
	file, info, err := openPlain(root, f.Path)
	if err != nil {
		return refuse(protocol.CodeUnknown, "%s", protocol.Words(err.Error()))
	}
	defer file.Close() //nolint:errcheck // only read
	if info.Size() != f.Size {
		return refuse(protocol.CodeMismatch, "%q has changed since it was counted", protocol.Clip(f.Path))
	}
	if _, err := file.Seek(q.Offset, io.SeekStart); err != nil {
		return err
	}
	if err := writeHead(s, answer{OK: true, Offset: q.Offset, Size: f.Size}); err != nil {
		return err
	}
	return steady(s, s, file, f.Size-q.Offset, buffer)
}

// RootError says why a directory cannot hold the files of jobs under other accounts,
// which must be able to enter every directory above.
func RootError(dir string) error {
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err == nil && info.Mode()&0o001 == 0 {
			return fmt.Errorf("%s has mode %s: other accounts cannot enter it", d, strconv.FormatInt(int64(info.Mode().Perm()), 8))
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
