package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"ramp/protocol"
	"ramp/protocol/message"
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
		return d.put(s, q, g, buffer)
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
func (d *Depot) put(s Stream, q request, g Grant, buffer []byte) error {
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
	if whole, err := d.missing(g.Job, []protocol.StagedFile{f}); err == nil && whole == 0 { // the exchange that brought it broke off
		there := answer{OK: true, Offset: f.Size, Size: f.Size}
		return errors.Join(writeHead(s, there), writeHead(s, there))
	}
	part, err := d.openPart(g.Job, f)
	if err != nil {
		return err
	}
	defer part.file.Close() //nolint:errcheck // it was synced, or is not whole
	if err := writeHead(s, answer{OK: true, Offset: part.size, Size: f.Size}); err != nil {
		return err
	}
	if err := steady(s, io.MultiWriter(part.file, part.hash), s, f.Size-part.size, buffer); err != nil {
		return err
	}
	if err := d.finish(g.Job, f, part); err != nil {
		return err
	}
	missing, err := d.missing(g.Job, g.Inputs)
	if err != nil {
		return err
	}
	d.tell(message.Prepared{Job: g.Job, Missing: missing})
	return writeHead(s, answer{OK: true, Offset: f.Size, Size: f.Size})
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
	hash hash.Hash
	size int64
}

// openPart opens what there is of a file, and reads it: its end is what the rest
// is added to.
func (d *Depot) openPart(job string, f protocol.StagedFile) (*part, error) {
	sum := sha256.Sum256([]byte(f.Path))
	p := &part{name: filepath.Join(d.dir(job), partDir, hex.EncodeToString(sum[:16])), hash: sha256.New()}
	var err error
	if p.file, err = os.OpenFile(p.name, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	p.size, err = io.Copy(p.hash, io.LimitReader(p.file, f.Size))
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// finish checks a file that has come whole, and puts it where the job runs.
func (d *Depot) finish(job string, f protocol.StagedFile, p *part) error {
	if got := hex.EncodeToString(p.hash.Sum(nil)); got != f.SHA256 {
		if err := os.Remove(p.name); err != nil {
			return err
		}
		return refuse(protocol.CodeMismatch, "%q has another SHA-256 than was announced", clip(f.Path))
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
