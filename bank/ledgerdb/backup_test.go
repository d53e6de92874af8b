package ledgerdb_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// sound opens a ledger, audits it whole and says what it answers.
func sound(t *testing.T, path string, s signer) string {
	t.Helper()
	db, err := ledgerdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, log, err := db.AuditAll(true, s.open, nil)
	if err != nil || len(r.Bad) > 0 || len(log.Bad) > 0 {
		t.Fatal(err, r.Bad, log.Bad)
	}
	text, err := contents(db)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBackupIsTheLedgerAtOneMomentWhileAppendsGoOn(t *testing.T) {
	s, dir := newSigner(t), t.TempDir()
	d := signedBank(t, s, filepath.Join(dir, "ledger.db"), 50)
	copies := []string{filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "3")}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := byte(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := d.db.Append([]protocol.Record{{Table: "other", Key: string([]byte{i}), Value: []byte{i}}}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for _, path := range copies {
		if _, err := d.db.Backup(path); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	for _, path := range copies {
		sound(t, path, s)
	}
}

func TestBackupCanBeWrittenToOnceAndOpenedAgain(t *testing.T) {
	s, dir := newSigner(t), t.TempDir()
	d := signedBank(t, s, filepath.Join(dir, "ledger.db"), 5)
	for i := range byte(4) { // of odd and even transactions
		if err := d.db.Append([]protocol.Record{{Table: "other", Key: "k", Value: []byte{i}}}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, string('a'+rune(i)))
		if _, err := d.db.Backup(path); err != nil {
			t.Fatal(err)
		}
		db, err := ledgerdb.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(db.Append([]protocol.Record{{Table: "other", Key: "k", Value: []byte("x")}}), db.Close())
		if err != nil {
			t.Fatal(err)
		}
		sound(t, path, s)
	}
}

func TestBackupNeverOverwrites(t *testing.T) {
	s, dir := newSigner(t), t.TempDir()
	d := signedBank(t, s, filepath.Join(dir, "ledger.db"), 5)
	path := filepath.Join(dir, "copy")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.db.Backup(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("backup over a file: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file has %q (%v)", b, err)
	}
	if err := os.Symlink(path, filepath.Join(dir, "linked.new")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.db.Backup(filepath.Join(dir, "linked")); err != nil {
		t.Errorf("backup where somebody has put a link: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file behind the link has %q (%v)", b, err)
	}
	if _, err := d.db.Backup(filepath.Join(dir, "no", "copy")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("backup to nowhere: %v", err)
	}
}

// Who orders a backup, is killed and orders it again may have two of them made at once.
func TestBackupsToOnePathAtOnceAreOneBackup(t *testing.T) {
	s, dir := newSigner(t), t.TempDir()
	d := signedBank(t, s, filepath.Join(dir, "ledger.db"), 50)
	for round := range 10 {
		path := filepath.Join(dir, string('a'+rune(round)))
		var wg sync.WaitGroup
		var made atomic.Int32
		for range 4 {
			wg.Go(func() {
				switch _, err := d.db.Backup(path); {
				case err == nil:
					made.Add(1)
				case !errors.Is(err, fs.ErrExist):
					t.Errorf("one of several: %v", err)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 {
			t.Errorf("%d backups were made of one file", made.Load())
		}
		sound(t, path, s)
	}
}

func TestCompactedLedgerIsSmallerAndTheSame(t *testing.T) {
	s := newSigner(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	d := signedBank(t, s, path, 200)
	if _, _, err := ledgerdb.Compact(path); !errors.As(err, new(*boltfile.InUseError)) {
		t.Errorf("an open ledger is compacted: %v", err)
	}
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	want := sound(t, path, s)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	before, after, err := ledgerdb.Compact(link)
	if err != nil || after >= before {
		t.Errorf("%d bytes became %d: %v", before, after, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if got := sound(t, path, s); got != want {
		t.Error("the compacted ledger has other contents")
	}
	if _, err := os.Stat(path + ".compact"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left behind: %v", err)
	}
}

func TestDamagedLedgerIsNotCompacted(t *testing.T) {
	s := newSigner(t)
	path := filepath.Join(t.TempDir(), "ledger.db")
	d := signedBank(t, s, path, 20)
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	whole := usedPart(t, path)
	whole[40] = 0xff
	rewrite(t, path, whole)
	if _, _, err := ledgerdb.Compact(path); err == nil {
		t.Error("it is compacted")
	}
}

func TestSinceIsTheFirstEntryAtOrAfterATime(t *testing.T) {
	d := signedBank(t, newSigner(t), filepath.Join(t.TempDir(), "ledger.db"), 20)
	es, err := d.db.Entries(1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	at := func(when time.Time) uint64 {
		n := uint64(1)
		for _, e := range es {
			if e.Time.Before(when) {
				n = e.Number + 1
			}
		}
		return n
	}
	for _, when := range []time.Time{{}, es[0].Time, es[9].Time, es[9].Time.Add(1), d.now.Add(time.Hour)} {
		if got, err := d.db.Since(when); err != nil || got != at(when) {
			t.Errorf("since %s: entry %d, want %d (%v)", when, got, at(when), err)
		}
	}
}
