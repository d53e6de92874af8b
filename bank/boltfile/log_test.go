package boltfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"ramp/agents/storetest"
	"ramp/bank/boltfile"
)

// logged is a form with a log for three small transactions.
var logged = boltfile.Form{Name: "file", Format: "a test's file", Schema: 1, Deep: []string{"t"}, Log: 4 * logPage}

// long is the same with a longer log.
var long = boltfile.Form{Name: "file", Format: "a test's file", Schema: 1, Deep: []string{"t"}, Log: 16 * logPage}

func strict(f boltfile.Form) boltfile.Form {
	f.Strict = true
	return f
}

const (
	logPage   = 4096
	frameHead = 32
	direct    = 2 // transactions before a process begins a log
)

// add is transaction n: it counts, and writes a row.
func add(n int) func(tx *boltfile.Tx) error {
	return func(tx *boltfile.Tx) error {
		b, err := tx.Table("t", fmt.Sprint("rows", n%2), 0)
		if err != nil {
			return err
		}
		last, err := tx.Table("t", "last", 1)
		if err != nil {
			return err
		}
		value := fmt.Appendf(nil, "row %d", n)
		defer clear(value) // it is the caller's
		return errors.Join(b.Put(fmt.Appendf(nil, "%03d", n), value), last.Set("last", fmt.Append(nil, n)),
			last.SetSequence(uint64(n)), last.Set("none", nil))
	}
}

// added is how many transactions of add a file has; all of each, in order.
func added(t *testing.T, f *boltfile.File) (n int) {
	t.Helper()
	check(t, f.View(func(tx *bbolt.Tx) error {
		root := tx.Bucket([]byte("t"))
		if root == nil {
			return nil
		}
		last := root.Bucket([]byte("last"))
		if _, err := fmt.Sscan(string(last.Get([]byte("last"))), &n); err != nil || last.Sequence() != uint64(n) {
			return fmt.Errorf("the last is %q, the sequence %d", last.Get([]byte("last")), last.Sequence())
		}
		for i := 1; i <= n; i++ {
			b := root.Bucket(fmt.Append(nil, "rows", i%2))
			if v := b.Get(fmt.Appendf(nil, "%03d", i)); string(v) != fmt.Sprint("row ", i) {
				return fmt.Errorf("row %d of %d is %q", i, n, v)
			}
		}
		if rows := root.Bucket([]byte("rows0")); rows != nil && rows.Get(fmt.Appendf(nil, "%03d", n+1)) != nil {
			return fmt.Errorf("there is a row behind the last, %d", n)
		}
		return nil
	}))
	return n
}

func mustAdd(t *testing.T, f *boltfile.File, n int) {
	t.Helper()
	if _, err := f.Write(add(n)); err != nil {
		t.Fatalf("transaction %d: %v", n, err)
	}
}

// image is a file and its log as a process leaves them that is killed.
type image struct{ file, log []byte }

func imageOf(t *testing.T, path string) (i image) {
	t.Helper()
	var err error
	if i.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if i.log, err = os.ReadFile(path + boltfile.LogEnd); err != nil {
		t.Fatal(err)
	}
	return i
}

// open opens an image, under a new name.
func (i image) open(t *testing.T) (*boltfile.File, error) { return i.openAs(t, &long) }

func (i image) openAs(t *testing.T, form *boltfile.Form) (*boltfile.File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	check(t, os.WriteFile(path, i.file, 0o600))
	check(t, os.WriteFile(path+boltfile.LogEnd, i.log, 0o600))
	f, err := form.Open(path)
	if err == nil {
		t.Cleanup(func() { _ = f.Close() })
	}
	return f, err
}

// killedAfter are the images of a process killed behind each of its transactions direct+1..n.
func killedAfter(t *testing.T, n int) (images []image) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := long.Open(path)
	check(t, err)
	for i := 1; i <= n; i++ {
		mustAdd(t, f, i)
		if i > direct {
			images = append(images, imageOf(t, path))
		}
	}
	check(t, f.Close())
	return images
}

// frame is where the frame of transaction n of killedAfter is in the log, and its length.
func (i image) frame(n int) (at, size int) {
	at = logPage * (n - direct)
	return at, int(i.log[at+4]) | int(i.log[at+5])<<8
}

// A process that dies while it writes a frame leaves any part of it, and what was there
// before. All that was acknowledged is there, and the next one takes its place.
func TestATornFrameIsDropped(t *testing.T) {
	const last = 6
	images := killedAfter(t, last)
	older, whole := images[len(images)-2], images[len(images)-1]
	at, size := whole.frame(last)
	for cut := range size + 1 {
		for _, tail := range []bool{false, true} { // the end arrives before the beginning
			torn := image{whole.file, bytes.Clone(whole.log)}
			from, to := at+cut, at+size
			if tail {
				from, to = at, at+cut
			}
			copy(torn.log[from:to], older.log[from:to])
			want := last - 1
			if bytes.Equal(torn.log, whole.log) {
				want = last
			}
			f, err := torn.open(t)
			if err != nil {
				t.Fatalf("torn at %d: %v", cut, err)
			}
			if n := added(t, f); n != want {
				t.Fatalf("torn at %d of %d (tail: %t): %d transactions, want %d", cut, size, tail, n, want)
			}
			mustAdd(t, f, want+1)
			if n := added(t, f); n != want+1 {
				t.Fatalf("torn at %d: %d transactions after the next, want %d", cut, n, want+1)
			}
		}
	}
}

// Damage to what was acknowledged is never skipped.
func TestADamagedLogIsNotOpened(t *testing.T) {
	const last = 5
	images := killedAfter(t, last)
	whole := images[len(images)-1]
	damaged := func(what string, i image) {
		t.Helper()
		_, err := i.open(t)
		if err == nil || !strings.Contains(err.Error(), "damaged") && !errors.Is(err, boltfile.ErrNewer) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: %v", what, err)
		}
	}
	flip := func(at int) image {
		log := bytes.Clone(whole.log)
		log[at] ^= 1 << (at % 8)
		return image{whole.file, log}
	}
	for at := range len("ramp log") + 1 + 8 + 16 + 4 {
		damaged(fmt.Sprint("its head, byte ", at), flip(at))
	}
	for n := direct + 1; n < last; n++ {
		from, size := whole.frame(n)
		for at := from; at < from+size; at++ {
			damaged(fmt.Sprintf("transaction %d, byte %d", n, at-from), flip(at))
		}
	}
	for _, size := range []int{0, 1, logPage, logPage + frameHead, len(whole.log) - 1} {
		damaged(fmt.Sprint("cut at ", size), image{whole.file, whole.log[:size]})
	}
}

// A log and a file that do not belong together are not opened, unless all of the log is in the
// file already.
func TestALogOfAnotherStateIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := long.Open(path)
	check(t, err)
	for n := 1; n <= 4; n++ {
		mustAdd(t, f, n)
	}
	first := imageOf(t, path)
	if n := added(t, f); n != 4 { // which puts it into the file
		t.Fatal(n)
	}
	committed := imageOf(t, path)
	mustAdd(t, f, 5)
	second := imageOf(t, path)
	check(t, f.Close())
	for _, c := range []struct {
		what string
		image
		want int // 0: refused
	}{
		{"an older file with a newer log", image{first.file, second.log}, 0},
		{"another file of the same age", image{larger(t).file, first.log}, 0},
		{"a newer file with an older log", image{second.file, first.log}, 4},
		{"killed between the file and the log", image{committed.file, first.log}, 4},
		{"killed as it is", second, 5},
	} {
		f, err := c.open(t)
		if err == nil {
			if n := added(t, f); n != c.want {
				t.Errorf("%s: %d transactions, want %d", c.what, n, c.want)
			}
			continue
		}
		if c.want != 0 || !strings.Contains(err.Error(), "of another file") {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// larger is as old as the others, but has more pages.
func larger(t *testing.T) image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := long.Open(path)
	check(t, err)
	_, err = f.Write(func(tx *boltfile.Tx) error {
		b, err := tx.Table("t", "large", 0)
		return errors.Join(err, b.Put([]byte("k"), make([]byte, 1<<16)))
	})
	check(t, err)
	for n := 1; n <= direct; n++ {
		mustAdd(t, f, n)
	}
	defer func() { check(t, f.Close()) }()
	return imageOf(t, path)
}

// A process that dies at any moment leaves a file and a log that give all that was
// acknowledged, and nothing else; so do many deaths in a row.
func TestEveryKillKeepsWhatWasAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	n := 0
	for range 6 {
		f, err := logged.Open(path)
		check(t, err)
		if got := added(t, f); got != n {
			t.Fatalf("%d transactions, want %d", got, n)
		}
		for range 7 {
			n++
			mustAdd(t, f, n)
		}
		dead := imageOf(t, path)
		check(t, f.Close())
		check(t, os.WriteFile(path, dead.file, 0o600))
		check(t, os.WriteFile(path+boltfile.LogEnd, dead.log, 0o600))
	}
}

// A transaction that is refused leaves the ones before it as they are, in the log or not.
func TestARefusedTransactionTakesNothingAlong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := logged.Open(path)
	check(t, err)
	for n := 1; n <= 9; n++ {
		mustAdd(t, f, n)
		refused := errors.New("refused")
		uncertain, err := f.Write(func(tx *boltfile.Tx) error { return errors.Join(add(n+1)(tx), refused) })
		if !errors.Is(err, refused) || uncertain {
			t.Fatalf("refused: %v, uncertain %t", err, uncertain)
		}
		check(t, f.Look(func(tx *bbolt.Tx) error {
			if v := tx.Bucket([]byte("t")).Bucket([]byte("last")).Get([]byte("last")); string(v) != fmt.Sprint(n) {
				return fmt.Errorf("the last is %q, want %d", v, n)
			}
			return nil
		}))
	}
	if n := added(t, f); n != 9 {
		t.Errorf("%d transactions, want 9", n)
	}
	check(t, f.Settle()) // an audit does so, and a log begins again
	mustAdd(t, f, 10)
	imageOf(t, path)
	check(t, f.Close())
	if _, err := os.Stat(path + boltfile.LogEnd); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed file keeps its log: %v", err)
	}
}

// Every write and flush of 16 transactions fails, one at a time: those of the log, when it
// begins, and when it is full. All that was acknowledged is there.
func TestAFailingDiskLosesNothing(t *testing.T) {
	storetest.OnFaultyDisk(t, func(t *testing.T, d *storetest.FaultyDisk) {
		for _, form := range []boltfile.Form{logged, strict(logged)} {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
				for call := 1; failed(t, &form, d, call, errno); call++ {
				}
			}
		}
	})
}

// failed has one call fail, and reports whether there was one.
func failed(t *testing.T, form *boltfile.Form, d *storetest.FaultyDisk, call int, errno syscall.Errno) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := form.Open(path)
	check(t, err)
	what := fmt.Sprintf("call %d fails with %v", call, errno)
	d.Fail(call, errno)
	n, uncertain := 0, false
	for n < 16 && err == nil {
		if uncertain, err = f.Write(add(n + 1)); err == nil {
			n++
		}
	}
	none := d.Failed() == 0
	d.Fail(0, 0)
	switch {
	case err != nil && uncertain:
		if _, err := f.Write(add(n + 1)); err == nil || !f.Suspect() {
			t.Errorf("%s: after the disk failed it goes on (%v)", what, err)
		}
	case err != nil:
		if got := added(t, f); got != n {
			t.Errorf("%s: %d transactions are there, %d were acknowledged", what, got, n)
		}
		n++
		mustAdd(t, f, n)
	}
	check(t, f.Close())
	f, err = form.Open(path)
	check(t, err)
	if got := added(t, f); got != n && !(uncertain && got == n+1) {
		t.Errorf("%s: opened again it has %d transactions, %d were acknowledged", what, got, n)
	}
	check(t, f.Close())
	return !none
}

// A strict file is not opened without the log that its last process left, unless there is
// nothing in it. Given up, it has what it had before.
func TestAStrictFileNeedsItsLog(t *testing.T) {
	form := strict(long)
	path := filepath.Join(t.TempDir(), "a.db")
	f, err := form.Open(path)
	check(t, err)
	n := 0
	for range 3 { // the log begins, and goes on after what it has was put into the file
		for range direct + 2 {
			n++
			mustAdd(t, f, n)
			if left, lost := leftWithoutLog(t, &form, path); lost != (n > direct) || left != n && !lost {
				t.Errorf("after %d transactions without the log: %d, lost %t", n, left, lost)
			}
		}
		if got := added(t, f); got != n { // reading at length settles
			t.Errorf("%d transactions, want %d", got, n)
		}
		if left, lost := leftWithoutLog(t, &form, path); left != n || lost {
			t.Errorf("after %d settled transactions without the log: %d, lost %t", n, left, lost)
		}
	}
	n++
	mustAdd(t, f, n)
	left := imageOf(t, path)
	check(t, f.Close())
	b, err := os.ReadFile(path)
	check(t, err)
	if left, lost := leftWithoutLog(t, &form, path); left != n || lost || bytes.Contains(b, []byte("ramp log")) {
		t.Errorf("closed after %d transactions: %d, lost %t", n, left, lost)
	}
	for range 2 { // with its log it opens, and once closed it needs none
		f, err = left.openAs(t, &form)
		check(t, err)
		if got := added(t, f); got != n {
			t.Errorf("%d transactions, want %d", got, n)
		}
		path := f.Path()
		check(t, f.Close())
		if left, lost := leftWithoutLog(t, &form, path); left != n || lost {
			t.Errorf("opened and closed after %d transactions: %d, lost %t", n, left, lost)
		}
	}
}

// leftWithoutLog is how many transactions a copy of the file at path has without its log, and
// whether it says that some are lost.
func leftWithoutLog(t *testing.T, form *boltfile.Form, path string) (n int, lost bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	to := filepath.Join(t.TempDir(), "b.db")
	check(t, os.WriteFile(to, b, 0o600))
	f, err := form.Open(to)
	if lost = errors.Is(err, boltfile.ErrNoLog); lost {
		check(t, boltfile.DropLog(to))
		f, err = form.Open(to)
	}
	check(t, err)
	n = added(t, f)
	check(t, f.Close())
	return n, lost
}

// FuzzLog overwrites a number anywhere in a log. It is opened with all that was
// acknowledged but the last, which may be torn, or not at all.
func FuzzLog(f *testing.F) {
	const last = 5
	path := filepath.Join(f.TempDir(), "a.db")
	db, err := long.Open(path)
	for n := 1; n <= last && err == nil; n++ {
		_, err = db.Write(add(n))
	}
	whole := image{}
	if err == nil {
		whole.file, err = os.ReadFile(path)
	}
	if err == nil {
		whole.log, err = os.ReadFile(path + boltfile.LogEnd)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	for n := direct + 1; n <= last+1; n++ {
		for field := range frameHead/8 + 2 {
			f.Add(uint32((n-direct)*logPage+8*field), uint64(1)<<(7*field))
		}
	}
	f.Add(uint32(0), uint64(1))
	f.Fuzz(func(t *testing.T, at uint32, number uint64) {
		log := bytes.Clone(whole.log)
		binary.LittleEndian.PutUint64(log[int(at)%(len(log)-8):], number)
		db, err := image{whole.file, log}.open(t)
		if err != nil {
			return
		}
		if n := added(t, db); n < last-1 || n > last {
			t.Errorf("%d transactions of %d", n, last)
		}
	})
}
