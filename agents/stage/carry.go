package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ramp/protocol"
	"ramp/protocol/message"
)

// ErrSource means that an input of the owner cannot be sent: the file is gone, or
// differs from the announced one. Trying again does not help.
var ErrSource = errors.New("cannot be sent")

// errCorrupted means that a file arrived with wrong contents: the site's part of it was
// wrong, or the network's checks failed. The site starts the file again.
var errCorrupted = errors.New("was corrupted on the way")

// Put sends a file to a site, from where the site's part of it ends.
func Put(s Stream, k Key, in message.RunInput) error {
	f, err := os.OpenFile(in.Source, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for a file that has become a pipe
	if err != nil {
		return fmt.Errorf("%s %w: %w", in.Source, ErrSource, err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || info.Size() != in.File.Size || !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w: it has changed since it was announced", in.Source, ErrSource)
	}
	if err := fits(s, in.File); err != nil {
		return err
	}
	a, err := ask(s, request{Key: k, Do: "put", Path: in.File.Path})
	if err != nil {
		return err
	}
	if a.Offset < 0 || a.Offset > in.File.Size {
		return fmt.Errorf("the site asks for byte %d of a file of %d bytes", a.Offset, in.File.Size)
	}
	if _, err := f.Seek(a.Offset, io.SeekStart); err != nil {
		return err
	}
	if err := steady(s, s, f, in.File.Size-a.Offset, make([]byte, min(chunk, in.File.Size-a.Offset))); err != nil {
		return err
	}
	_, err = hear(s)
	return changed(in, err)
}

// changed reports that the owner's file changed while it was sent.
func changed(in message.RunInput, err error) error {
	var r *Refusal
	if !errors.As(err, &r) || r.Code != protocol.CodeMismatch {
		return err
	}
	if now, e := Describe(in.Source, in.File.Path); e == nil && now.SHA256 == in.File.SHA256 {
		return fmt.Errorf("%s %w", in.File.Path, errCorrupted)
	}
	return fmt.Errorf("%s %w: it has changed since it was announced", in.Source, ErrSource)
}

// Get fetches a file that a job has left into a directory, from where a partial copy
// there ends. It leaves an identical file alone.
func Get(s Stream, k Key, f protocol.StagedFile, dir *os.Root) error {
	if err := f.Validate(); err != nil {
		return err
	}
	to := filepath.FromSlash(f.Path)
	if there(dir, to, digestOf(f)) {
		return nil
	}
	if err := fits(s, f); err != nil {
		return err
	}
	if err := dir.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	half := filepath.Join(filepath.Dir(to), halfName(f))
	file, err := openHalf(dir, half)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // synced, or incomplete
	if there(dir, to, digestOf(f)) {
		return dir.Remove(half) // another fetch was faster
	}
	switch whole, err := fetch(s, k, f, file); {
	case err != nil:
		return err
	case !whole:
		return errors.Join(fmt.Errorf("%s: the received file does not have the announced %s", f.Path, digestOf(f).name), dir.Remove(half))
	}
	if err := errors.Join(file.Truncate(f.Size), runnable(file, f.Exec), file.Sync()); err != nil {
		return err
	}
	return dir.Rename(half, to)
}

// runnable makes a file executable for everybody whom the account's umask lets read it.
func runnable(file *os.File, exec bool) error {
	info, err := file.Stat()
	if err != nil || !exec {
		return err
	}
	mode := info.Mode().Perm()
	return file.Chmod(mode | mode&0o444>>2)
}

// openHalf opens the partial file. If two fetches run at once, as after a kill, one
// waits for the other, and then opens the renamed file again.
func openHalf(dir *os.Root, half string) (*os.File, error) {
	for {
		f, err := dir.OpenFile(half, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		mine, err := f.Stat()
		named, e := dir.Lstat(half)
		if err == nil && e == nil && os.SameFile(mine, named) {
			return f, nil
		}
		if e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// halfName names the partial file: beside the final one, and different from that of any other file.
func halfName(f protocol.StagedFile) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + f.SHA256))
	return ".ramp-" + hex.EncodeToString(sum[:16]) + ".part"
}

// fetch reads the rest of a file, and reports whether it is correct now. If the old part
// was wrong, fetch starts again, once.
func fetch(s Stream, k Key, f protocol.StagedFile, file *os.File) (bool, error) {
	for {
		d := digestOf(f)
		have, err := readInto(d, io.LimitReader(file, f.Size))
		if err != nil {
			return false, err
		}
		if _, err := ask(s, request{Key: k, Do: "get", Path: f.Path, Offset: have}); err != nil {
			return false, err
		}
		if err := receive(s, file, d, have, f.Size-have); err != nil {
			return false, err
		}
		if whole := d.right(); whole || have == 0 {
			return whole, nil
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
		if err := file.Truncate(0); err != nil {
			return false, err
		}
	}
}

// there reports whether a directory has a file as announced.
func there(dir *os.Root, name string, d digest) bool {
	if info, err := dir.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	_, err = readInto(d, f)
	return err == nil && d.right()
}

// Describe reads a file to announce it under a path. It refuses a pipe without waiting for it.
func Describe(source, path string) (protocol.StagedFile, error) {
	f, err := os.OpenFile(source, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return protocol.StagedFile{}, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return protocol.StagedFile{}, err
	}
	if !info.Mode().IsRegular() {
		return protocol.StagedFile{}, fmt.Errorf("%s is not a regular file", f.Name())
	}
	return describe(f, info, path)
}
