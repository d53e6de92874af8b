package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// ErrDamaged means that a file is not as it was written.
var ErrDamaged = errors.New("damaged")

// ErrNewer is returned by Open for a file that a later version has written.
var ErrNewer = errors.New("written by a newer ramp")

// ErrNoLog is returned by Open for a strict file without the log that continues it.
var ErrNoLog = errors.New("the last transactions are only in its log, which is missing")

// Newer is an ErrNewer for a file of form n, where this program reads up to most.
func Newer(n, most uint32) error {
	return fmt.Errorf("%w (form %d; this one reads up to %d): install that version or a later one", ErrNewer, n, most)
}

// lockTimeout is how long bbolt waits for its own lock of the file, which only the holder
// of ours takes.
const lockTimeout = time.Second

// The table with a file's format and schema.
var (
	metaTable = []byte("meta")
	formatKey = []byte("format")
	schemaKey = []byte("schema")
)

// Form is the common form of files of a kind.
type Form struct {
	Name    string   // in messages: "journal"
	Format  string   // in the file: "ramp journal"
	Schema  uint32   // the layout to write, and the newest to read; 1 or more. forms_test.go says when to raise it
	Tables  []string // at the top level, besides "meta"
	Deep    []string // top-level tables that contain tables
	Options bbolt.Options
	Log     int  // bytes of the log in front of the file, at most mostLog; 0: none
	Grow    int  // bytes by which the file grows; 0: as bbolt does
	Strict  bool // whether a fault in either of its two descriptions is damage (CheckMetas), and a missing log an error
}

// Open opens the file at path, or begins a new one, readable by the owner only. It
// fails with *InUseError if another process has it open, and with ErrNewer.
func (f *Form) Open(path string) (*File, error) {
	lock, suspect, err := f.takeLock(path)
	if err != nil {
		return nil, err
	}
	b, err := f.open(path)
	if err != nil {
		freeLock(lock, suspect)
		return nil, err
	}
	file := &File{db: b, lock: lock, suspect: suspect, space: f.Log, strict: f.Strict}
	if err := Guard(func() error { return f.begin(file) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s %s: %w", f.Name, path, err), file.shut())
	}
	return file, nil
}

// begin adds what is only in the log, and marks a file of an older form before anything of
// the newer one is in it.
func (f *Form) begin(b *File) error {
	if err := b.recall(); err != nil {
		return err
	}
	mark, old := binary.BigEndian.AppendUint32(nil, f.Schema), false
	err := b.View(func(tx *bbolt.Tx) error {
		old = !bytes.Equal(tx.Bucket(metaTable).Get(schemaKey), mark)
		return nil
	})
	if err != nil || !old {
		return err
	}
	_, err = b.Write(func(tx *Tx) error { return tx.In(string(metaTable), "").Put(schemaKey, mark) })
	return err
}

// open begins a new file under another name, so that a file with this name is always whole.
func (f *Form) open(path string) (*bbolt.DB, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		if err := f.Begin(path); err != nil {
			return nil, fmt.Errorf("begin %s %s: %w", f.Name, path, err)
		}
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", f.Name, err)
	case info.Size() == 0: // bbolt would begin a new one in it
		return nil, fmt.Errorf("open %s %s: %w: the file is empty", f.Name, path, ErrDamaged)
	}
	b, err := f.checked(path)
	if err != nil {
		return nil, fmt.Errorf("open %s %s: %w", f.Name, path, err)
	}
	return b, nil
}

func (f *Form) checked(path string) (*bbolt.DB, error) {
	if f.Strict {
		if err := CheckMetas(path); err != nil {
			return nil, err
		}
	}
	if err := CheckTrees(path, f.Deep...); err != nil {
		return nil, err
	}
	b, err := f.Bare(path)
	if err != nil {
		return nil, err
	}
	if err := Guard(func() error { return b.View(f.Check) }); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Bare opens a file as bbolt does, without lock and checks: a file that no other process knows yet.
func (f *Form) Bare(path string) (b *bbolt.DB, err error) {
	err = Guard(func() error {
		opts := f.Options
		opts.Timeout = lockTimeout
		if b, err = bbolt.Open(path, 0o600, &opts); err != nil {
			return err
		}
		if f.Grow > 0 {
			b.AllocSize = f.Grow
		}
		return nil
	})
	return b, err
}

// Begin makes a new file with empty tables. No other process may do so at the same time.
func (f *Form) Begin(path string) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b, err := f.Bare(fresh)
	if err != nil {
		return err
	}
	err = b.Update(f.write)
	if err = errors.Join(err, b.Close()); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return SyncDir(path)
}

func (f *Form) write(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucket(metaTable)
	if err != nil {
		return err
	}
	for _, name := range f.Tables {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	err = meta.Put(formatKey, []byte(f.Format))
	return errors.Join(err, meta.Put(schemaKey, binary.BigEndian.AppendUint32(nil, f.Schema)))
}

// Check compares a file with its form. It also checks the size: a file that lost its end
// would otherwise fail in the middle of the work.
func (f *Form) Check(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaTable)
	missing := func(name string) bool { return tx.Bucket([]byte(name)) == nil }
	if meta == nil || slices.ContainsFunc(f.Tables, missing) || string(meta.Get(formatKey)) != f.Format {
		return fmt.Errorf("not a %s of ramp", f.Name)
	}
	v := meta.Get(schemaKey)
	if len(v) != 4 {
		return fmt.Errorf("%w: it has no schema", ErrDamaged)
	}
	switch n := binary.BigEndian.Uint32(v); {
	case n > f.Schema:
		return Newer(n, f.Schema)
	case n == 0:
		return fmt.Errorf("%w: it has schema 0, the first was 1", ErrDamaged)
	}
	info, err := os.Stat(tx.DB().Path())
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("%w: it has %d bytes and should have %d", ErrDamaged, info.Size(), tx.Size())
	}
	return nil
}

// SyncDir makes the names in the directory of path durable.
func SyncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
