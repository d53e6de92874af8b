package ledgerdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
)

// openBolt begins a new file under another name, so that a file with this name
// is always whole.
func openBolt(path string) (*bbolt.DB, error) {
	switch info, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		if err := begin(path); err != nil {
			return nil, fmt.Errorf("begin ledger %s: %w", path, err)
		}
	case err != nil:
		return nil, fmt.Errorf("open ledger: %w", err)
	case info.Size() == 0: // bbolt would begin a new one in it
		return nil, fmt.Errorf("open ledger %s: damaged: the file is empty", path)
	}
	if err := boltfile.CheckMetas(path); err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	if err := boltfile.CheckTrees(path, string(tablesBucket), string(logBucket)); err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	b, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	if err := guard(func() error { return b.View(checkFormat) }); err != nil {
		_ = b.Close()
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	return b, nil
}

func openFile(path string) (b *bbolt.DB, err error) {
	err = guard(func() error {
		opts := &bbolt.Options{
			Timeout: lockPause, FreelistType: bbolt.FreelistArrayType, InitialMmapSize: initialMap, NoStatistics: true,
		}
		b, err = bbolt.Open(path, 0o600, opts)
		if err != nil {
			return err
		}
		b.AllocSize = growBy
		return nil
	})
	return b, err
}

func begin(path string) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b, err := openFile(fresh)
	if err != nil {
		return err
	}
	err = b.Update(writeFormat)
	if err = errors.Join(err, b.Close()); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return err
	}
	return syncDir(path)
}

func writeFormat(tx *bbolt.Tx) error {
	meta, err := tx.CreateBucket(metaBucket)
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucket(tablesBucket); err != nil {
		return err
	}
	err = meta.Put([]byte("format"), []byte(format))
	return errors.Join(err, meta.Put([]byte("schema"), binary.BigEndian.AppendUint32(nil, schema)))
}

// checkFormat also looks at the size: a file that lost its end would otherwise
// fail somewhere in the middle of the work.
func checkFormat(tx *bbolt.Tx) error {
	meta, tables := tx.Bucket(metaBucket), tx.Bucket(tablesBucket)
	if meta == nil || tables == nil || string(meta.Get([]byte("format"))) != format {
		return errors.New("not a ledger of ramp")
	}
	v := meta.Get([]byte("schema"))
	if len(v) != 4 {
		return errors.New("damaged: it does not say which schema it has")
	}
	switch n := binary.BigEndian.Uint32(v); {
	case n > schema:
		return fmt.Errorf("%w: it has schema %d, this program reads up to %d", ErrNewer, n, schema)
	case n == 0:
		return errors.New("damaged: it has schema 0, the first was 1")
	}
	info, err := os.Stat(tx.DB().Path())
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("damaged: it has %d bytes and should have %d", info.Size(), tx.Size())
	}
	return nil
}

// guard turns what a damaged file does to bbolt — assertions and faults in the
// mapping — into an error.
func guard(f func() error) error {
	never := false
	return guardExcept(&never, f)
}

// guardExcept lets panics through while foreign code is being called: they are
// not the file's.
func guardExcept(calling *bool, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if *calling {
				panic(r)
			}
			err = fmt.Errorf("damaged: %s", fault(r))
		}
	}()
	return f()
}

// fault puts what was recovered into words. The runtime calls a page that the
// file does not have any more a bad pointer.
func fault(r any) string {
	if _, ok := r.(runtime.Error); ok {
		return fmt.Sprintf("a page is missing or makes no sense (%v)", r)
	}
	return fmt.Sprint(r)
}
