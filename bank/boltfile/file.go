package boltfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"go.etcd.io/bbolt"
)

// directWrites is how many transactions a process commits before it begins a log: a command
// that soon ends needs none.
const directWrites = 2

// mostRoom bounds the memory that is kept for the next frame, in bytes.
const mostRoom = 1 << 20

var errFailed = errors.New("the disk has failed under this file: open it again")

// File is an open file. One transaction of bbolt stays open in it over many of Write: each is
// durable in the log, and all are committed at once.
type File struct {
	db      *bbolt.DB
	lock    *os.File
	suspect bool // its lock says lockFailed

	mu     sync.Mutex // one Write at a time; guards the fields below
	space  int        // for a log; 0: none
	writes int        // committed without a log
	log    *wal       // nil: none yet
	at     state      // of the file
	strict bool       // the file is marked while its log has what follows its state
	marked bool       // now
	tx     *bbolt.Tx  // all that is in the log and not in the file; nil: nothing
	room   []byte     // for the next frame
	failed error      // nothing is written any more
}

// Path is where the file is.
func (f *File) Path() string { return f.db.Path() }

// Write makes one transaction durable. An error is certain if nothing of it is stored: change
// failed, or the disk had no room. After any other failure of the disk the transaction may
// be stored or not, and the file is marked, so that it is audited when it is opened.
func (f *File) Write(change func(tx *Tx) error) (uncertain bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return true, f.failed
	}
	w, changed := Tx{ops: append(f.room[:0], make([]byte, frameHead)...)}, false
	err = Guard(func() (err error) {
		if f.tx == nil {
			if f.tx, err = f.db.Begin(true); err != nil {
				return err
			}
		}
		w.Tx = f.tx
		if err = change(&w); err == nil {
			changed = true
			err = f.keep(w.ops)
		}
		if f.room = w.ops; cap(f.room) > mostRoom {
			f.room = nil
		}
		return err
	})
	if err != nil {
		err = errors.Join(err, f.back(!changed || noRoom(err), err))
	}
	return f.failed != nil, err
}

// keep makes the open transaction durable: in the log, or in the file if there is no room there.
func (f *File) keep(ops []byte) error {
	if f.log == nil && f.space > 0 && f.writes >= directWrites {
		var err error
		if f.log, err = beginLog(f.Path(), f.space); err != nil {
			f.space = 0 // without room for one, a transaction is two flushes
		}
	}
	if f.log != nil && f.log.end+int64(len(ops)) <= f.log.size {
		if f.strict && !f.marked {
			if err := setMark(f.Path(), true); err != nil {
				return err
			}
			f.marked = true
		}
		return f.log.append(f.at, ops)
	}
	f.writes++
	return f.commit()
}

// commit writes the open transaction into the file. The log begins anew.
func (f *File) commit() (err error) {
	defer f.drop() // also if bbolt panics
	if err := f.tx.Commit(); err != nil {
		return err
	}
	if f.log != nil {
		f.log.end = logPage
	}
	f.at, f.marked, err = stateOf(f.Path())
	return err
}

// back returns to what is durable after a failure. Unless that is certain, the file is marked.
func (f *File) back(certain bool, why error) error {
	err := Guard(f.reload)
	if !certain || err != nil {
		f.failed = errFailed
		f.fail(why)
	}
	return err
}

// recall opens the log of a file that was just opened, if it has one.
func (f *File) recall() (err error) {
	if f.log, err = openLog(f.Path()); err != nil {
		return err
	}
	if f.at, f.marked, err = stateOf(f.Path()); err != nil {
		return err
	}
	if f.strict && f.marked && f.log == nil {
		return fmt.Errorf("%w: %s", ErrNoLog, f.Path()+LogEnd)
	}
	if err = f.reload(); err == nil {
		err = f.settle()
	}
	if noRoom(err) {
		return nil
	}
	return err
}

// reload opens a transaction with what is only in the log.
func (f *File) reload() error {
	f.drop()
	at, _, err := stateOf(f.Path())
	if err == nil && at != f.at {
		err = fmt.Errorf("transaction %d is in the file, although it failed", at.tx)
	}
	if err != nil || f.log == nil {
		return err
	}
	list, err := f.log.read(at)
	if err != nil || len(list) == 0 {
		return err
	}
	if f.tx, err = f.db.Begin(true); err != nil {
		return err
	}
	for _, ops := range list {
		if err := replay(f.tx, ops); err != nil {
			f.drop()
			return err
		}
	}
	return nil
}

func (f *File) drop() {
	if f.tx != nil {
		_ = f.tx.Rollback() // bbolt may have closed it already
		f.tx = nil
	}
}

// settle commits what is only in the log.
func (f *File) settle() error {
	if f.tx == nil || f.failed != nil {
		return f.failed
	}
	err := Guard(f.commit)
	if err != nil {
		err = errors.Join(err, f.back(noRoom(err), err))
	}
	return err
}

// read reads what is stored, while others write unless it is short; under a full or failed
// disk they wait too.
func (f *File) read(short bool, read func(tx *bbolt.Tx) error) error {
	f.mu.Lock()
	if !short {
		_ = f.settle() // the next Write says so
	}
	if f.tx != nil {
		defer f.mu.Unlock()
		return read(f.tx)
	}
	f.mu.Unlock()
	return f.db.View(read)
}

// View reads, and returns damage of the file as an error.
func (f *File) View(read func(tx *bbolt.Tx) error) error {
	return Guard(func() error { return f.read(false, read) })
}

// Look is View for a short look, during which nothing is written.
func (f *File) Look(read func(tx *bbolt.Tx) error) error {
	return Guard(func() error { return f.read(true, read) })
}

// Settle puts all that is stored into the file, and removes its log.
func (f *File) Settle() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.settle(); err != nil || f.log == nil {
		return err
	}
	if f.strict {
		if err := setMark(f.Path(), false); err != nil {
			return err
		}
		f.marked = false
	}
	err := errors.Join(f.log.f.Close(), os.Remove(f.Path()+LogEnd), SyncDir(f.Path()))
	f.log = nil
	return err
}

// CompactTo copies what is stored into an empty file, without unused pages.
func (f *File) CompactTo(b *bbolt.DB, step int64) error {
	return errors.Join(f.Settle(), Guard(func() error { return bbolt.Compact(b, f.db, step) }))
}

// Close closes the file and lets others open it. The log of a full or failed disk stays.
func (f *File) Close() error {
	err := f.Settle()
	if noRoom(err) || f.failed != nil {
		err = nil
	}
	return errors.Join(err, f.shut())
}

func (f *File) shut() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
	if f.log != nil {
		_ = f.log.f.Close() // all of it is flushed
		f.log = nil
	}
	err := f.db.Close()
	freeLock(f.lock, f.suspect)
	return err
}

// noRoom reports whether a file could not grow. Of ftruncate's error, bbolt keeps only the
// text; it leaves the file as it was.
func noRoom(err error) bool {
	if err == nil {
		return false
	}
	var write *fs.PathError
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
	return full && errors.As(err, &write) && write.Op == "write" || strings.HasPrefix(err.Error(), "file resize error: ")
}
