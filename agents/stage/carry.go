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

// ErrSource is a file of the owner's that cannot be sent: it is gone, or is no
// longer what was announced. Trying again does not help.
var ErrSource = errors.New("cannot be sent")

// errSpoilt is a file that was another when it came: what the site had of it was
// not right, or the network's checks have failed. The site begins it anew.
var errSpoilt = errors.New("was spoilt on the way")

// Put brings a file to a site, or what is missing of it there.
func Put(s Stream, k Key, in message.RunInput) error {
	f, err := os.OpenFile(in.Source, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe by now is not waited for
	if err != nil {
		return fmt.Errorf("%s %w: %w", in.Source, ErrSource, err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil || info.Size() != in.File.Size || !info.Mode().IsRegular() {
		return fmt.Errorf("%s %w: it has changed since it was announced", in.Source, ErrSource)
	}
	a, err := ask(s, request{Key: k, Do: "put", Path: in.File.Path})
	if err != nil {
		return err
	}
	if a.Offset < 0 || a.Offset > in.File.Size {
		return fmt.Errorf("the site has %d bytes of a file of %d", a.Offset, in.File.Size)
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

// changed tells that a file became another while it was sent.
func changed(in message.RunInput, err error) error {
	var r *Refusal
	if !errors.As(err, &r) || r.Code != protocol.CodeMismatch {
		return err
	}
	if now, e := Describe(in.Source, in.File.Path); e == nil && now.SHA256 == in.File.SHA256 {
		return fmt.Errorf("%s %w", in.File.Path, errSpoilt)
	}
	return fmt.Errorf("%s %w: it has changed since it was announced", in.Source, ErrSource)
}

// Get fetches a file that a job has left into a directory, or what is missing of
// it there. A file that is there already, and is the same, is left alone.
func Get(s Stream, k Key, f protocol.StagedFile, dir *os.Root) error {
	if err := f.Validate(); err != nil {
		return err
	}
	to := filepath.FromSlash(f.Path)
	if there(dir, to, digestOf(f)) {
		return nil
	}
	if err := dir.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	half := filepath.Join(filepath.Dir(to), halfName(f))
	file, err := openHalf(dir, half)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was synced, or is not whole
	if there(dir, to, digestOf(f)) {
		return dir.Remove(half) // another fetch was faster
	}
	switch whole, err := fetch(s, k, f, file); {
	case err != nil:
		return err
	case !whole:
		return errors.Join(fmt.Errorf("%s: what came has another %s than was announced", f.Path, digestOf(f).name), dir.Remove(half))
	}
	if err := errors.Join(file.Truncate(f.Size), runnable(file, f.Exec), file.Sync()); err != nil {
		return err
	}
	return dir.Rename(half, to)
}

// runnable lets those run a file who may read it, as the account's umask has it.
func runnable(file *os.File, exec bool) error {
	info, err := file.Stat()
	if err != nil || !exec {
		return err
	}
	mode := info.Mode().Perm()
	return file.Chmod(mode | mode&0o444>>2)
}

// openHalf opens the file that is not whole yet. Fetched twice at once, as after a
// kill, one fetch waits for the other: it opens anew what the other has renamed.
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

// halfName is where a file is written until it is whole: beside it, and apart from
// any other, also of the same name.
func halfName(f protocol.StagedFile) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + f.SHA256))
	return ".ramp-" + hex.EncodeToString(sum[:16]) + ".part"
}

// fetch reads what is missing of a file, and reports whether it is the right one
// now. If what was there was spoilt, it begins anew, once.
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

// there reports whether a file is in a directory as it was announced.
func there(dir *os.Root, name string, d digest) bool {
	if info, err := dir.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it is only read
	_, err = readInto(d, f)
	return err == nil && d.right()
}

// Describe reads what a file is, to announce it under a path. A pipe is refused, and
// not waited for.
func Describe(source, path string) (protocol.StagedFile, error) {
	f, err := os.OpenFile(source, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return protocol.StagedFile{}, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return protocol.StagedFile{}, err
	}
	if !info.Mode().IsRegular() {
		return protocol.StagedFile{}, fmt.Errorf("%s is no plain file", f.Name())
	}
	return describe(f, info, path)
}
