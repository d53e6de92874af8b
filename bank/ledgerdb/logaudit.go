package ledgerdb

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"ramp/bank/audit"
	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
)

// LogReport is the result of an audit of the log and of the file.
type LogReport struct {
	Size  uint64   // entries in the log
	Root  string   // of the log, computed from the entries, in hex
	Heads int      // stored ones
	Bad   []string // faults, at most ledger.MaxBad and "and more"
}

// OpenHead verifies a signed head, and gives its ID.
type OpenHead func(der []byte) (contract.Head, string, error)

// AuditAll recomputes the log from the entries and compares it with the stored tiles,
// state and heads; adds up the rows of all tables; looks up every key; and audits the
// tables (ledger.AuditSigned). open verifies a head; nil: heads are only read. An error
// means that the file could not be read.
//
// Without pages appends go on: the audit reads log and tables one after the other, each
// as of one moment, and takes one core from the bank. With pages it also walks the pages
// of the file, the free ones included; appends wait until it ends, and it reads log and
// tables at the same time. If it finds a fault in the pages or in the log it then reports
// only that: the rest of the file proves nothing.
func (db *DB) AuditAll(pages bool, open OpenHead, verify func(octets, signature []byte) error) (ledger.Report, LogReport, error) {
	if open == nil {
		open = contract.ReadHead
	}
	if pages {
		return db.auditStill(open, verify)
	}
	l, err := db.auditLog(open, false)
	if err != nil {
		return nothingAudited(), l, err
	}
	r, err := db.auditTables(verify)
	return r, l, err
}

func nothingAudited() ledger.Report { return ledger.Report{Bad: []string{}, Sum: map[string]string{}} }

// auditStill audits while nothing is written: two readers begin one after the other, and
// see the same.
func (db *DB) auditStill(open OpenHead, verify func(octets, signature []byte) error) (ledger.Report, LogReport, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.bolt.Settle(); err != nil {
		return nothingAudited(), LogReport{}, fmt.Errorf("audit ledger %s: %w", db.path, err)
	}
	if err := boltfile.CheckPages(db.path); err != nil {
		return nothingAudited(), LogReport{Bad: []string{"file: " + err.Error()}}, nil
	}
	var l LogReport
	var failed error
	var log sync.WaitGroup
	log.Go(func() { l, failed = db.auditLog(open, true) })
	r, err := func() (ledger.Report, error) {
		defer log.Wait() // also when verify panics
		return db.auditTables(verify)
	}()
	if failed != nil || len(l.Bad) > 0 {
		return nothingAudited(), l, failed
	}
	return r, l, err
}

func (db *DB) auditTables(verify func(octets, signature []byte) error) (r ledger.Report, err error) {
	err = db.View(func(t protocol.Tables) (err error) {
		r, err = ledger.AuditSigned(t, verify)
		return err
	})
	return r, err
}

// auditLog audits everything but the contents of the tables. walked: the pages of the
// file have been walked, so that a search finds every key.
func (db *DB) auditLog(open OpenHead, walked bool) (LogReport, error) {
	var r LogReport
	err := db.bolt.View(func(tx *bbolt.Tx) error {
		a := logAuditor{book: openBook(tx), report: &r, open: open, walked: walked}
		return a.audit(tx)
	})
	if err != nil {
		return r, fmt.Errorf("audit ledger %s: %w", db.path, err)
	}
	return r, nil
}

type logAuditor struct {
	book
	report *LogReport
	open   OpenHead
	bank   protocol.AgentID
	tree   *audit.Tree
	heads  []contract.Head // in order, without those that were compared
	tiles  int             // filled by the entries
	walked bool            // the pages of the file were walked
}

func (a *logAuditor) bad(format string, args ...any) {
	switch n := len(a.report.Bad); {
	case n < ledger.MaxBad:
		a.report.Bad = append(a.report.Bad, fmt.Sprintf(format, args...))
	case n == ledger.MaxBad:
		a.report.Bad = append(a.report.Bad, "and more")
	}
}

func (a *logAuditor) audit(tx *bbolt.Tx) error {
	a.names(tx)
	if len(a.report.Bad) > 0 {
		return nil // the rest of the file proves nothing
	}
	state, err := history{a.tables}.state()
	if err != nil {
		a.bad("%s", err)
	}
	a.bank = state.Bank
	s, err := decodeLogState(a.log.Get(logStateKey))
	if err != nil {
		a.bad("%s", err)
	}
	a.readHeads()
	if err := a.replay(); err != nil {
		return err
	}
	a.compare(s, uint64(tx.ID()))
	if a.walked {
		return nil // keys in order, within the bounds of the branches above them: lookUps finds nothing more
	}
	return a.lookUps()
}

// names checks that the file has its buckets, and no others.
func (a *logAuditor) names(tx *bbolt.Tx) {
	if err := form.Check(tx); err != nil {
		a.bad("%s", err)
	}
	if got := keysOf(tx.Cursor()); got != "log meta tables " {
		a.bad("the file has the parts %q", got)
		return
	}
	if got := keysOf(a.log.Cursor()); got != "heads state tiles " {
		a.bad("the log has the parts %q", got)
	}
	if got := keysOf(tx.Bucket([]byte("meta")).Cursor()); got != "format schema " {
		a.bad("the file's description has the parts %q", got)
	}
}

func keysOf(c *bbolt.Cursor) string {
	var b []byte
	for k, _ := c.First(); k != nil && len(b) < 256; k, _ = c.Next() {
		b = append(append(b, k...), ' ')
	}
	return string(b)
}

// readHeads reads all heads: numbered without a gap, each naming the one before
// it, of rising size and time.
func (a *logAuditor) readHeads() {
	var n uint64
	var id string
	var last contract.Head
	c := a.log.Bucket([]byte(headsBucket)).Cursor()
	for k, der := c.First(); k != nil; k, der = c.Next() {
		h, hid, err := a.open(der)
		first := len(a.heads) == 0
		switch {
		case len(k) != 8 || !first && binary.BigEndian.Uint64(k) != n+1:
			a.bad("head %x is out of place", k)
		case err != nil:
			a.bad("head %x: %s", k, err)
		case h.Bank != a.bank || h.Size < last.Size || h.Time.Before(last.Time):
			a.bad("head %x of %s, of %d entries, comes after one of %d", k, h.Bank, h.Size, last.Size)
		case !first && h.Previous != id || binary.BigEndian.Uint64(k) == 1 && h.Previous != hex.EncodeToString(make([]byte, audit.HashSize)):
			a.bad("head %x does not name the one before it", k)
		}
		if len(k) == 8 {
			n = binary.BigEndian.Uint64(k)
		}
		id, last = hid, h
		a.heads = append(a.heads, h)
	}
	if want := min(n, maxHeads); uint64(len(a.heads)) != want {
		a.bad("%d heads are stored, want %d", len(a.heads), want)
	}
	a.report.Heads = len(a.heads)
}

func (a *logAuditor) replay() error {
	a.tree = audit.NewTree()
	a.passHeads()
	entries := a.tables.Bucket([]byte(ledger.TableEntries))
	if entries == nil {
		return nil
	}
	return entries.ForEach(func(k, v []byte) error {
		if n := a.tree.Size() + 1; string(k) != ledger.NumberKey(n) {
			a.bad("entry %x is not the next, %d", k, n)
		}
		err := a.tree.Append(v, a.sameTile)
		a.passHeads()
		return err
	})
}

// passHeads compares the heads of the size that replay has reached.
func (a *logAuditor) passHeads() {
	for len(a.heads) > 0 && a.heads[0].Size == a.tree.Size() {
		if root := a.tree.Root(); a.heads[0].Root != hex.EncodeToString(root[:]) {
			a.bad("the head signed at %d entries has another root than the entries", a.heads[0].Size)
		}
		a.heads = a.heads[1:]
	}
}

func (a *logAuditor) sameTile(t audit.Tile) error {
	a.tiles++
	if stored := a.log.Bucket([]byte(tilesBucket)).Get(tileKey(t.Row, t.Number)); !bytes.Equal(stored, t.Hashes) {
		a.bad("tile %d of row %d of the log does not follow from the entries", t.Number, t.Row)
	}
	return nil
}

// compare compares the computed log with the stored state.
func (a *logAuditor) compare(s logState, txid uint64) {
	root := a.tree.Root()
	a.report.Size, a.report.Root = a.tree.Size(), hex.EncodeToString(root[:])
	if s.size != a.tree.Size() || s.root != root {
		a.bad("the log's state is of %d entries with root %x, there are %d with root %x", s.size, s.root, a.tree.Size(), root)
	}
	if s.txid != txid {
		a.bad("transaction %d is the last, the log knows %d", txid, s.txid)
	}
	if len(a.heads) > 0 {
		a.bad("%d heads are of more entries than there are", len(a.heads))
	}
	tiles := 0
	c := a.log.Bucket([]byte(tilesBucket)).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		tiles++
	}
	if tiles != a.tiles {
		a.bad("the log has %d tiles, the entries fill %d", tiles, a.tiles)
	}
	a.rows(s)
}

func (a *logAuditor) rows(s logState) {
	switch d, err := digestOf(a.tables); {
	case err != nil:
		a.bad("the rows of the tables cannot be read: %v", err)
	case d != s.digest:
		a.bad("a row of the tables was changed, lost or added: they sum to %016x, want %016x", uint64(d), uint64(s.digest))
	}
}

// lookUps checks that a search finds every row by its key: a fault in the pages above
// hides rows from a search, but not from a scan.
func (a *logAuditor) lookUps() error {
	for _, parent := range []*bbolt.Bucket{a.tables, a.log} {
		err := parent.ForEachBucket(func(name []byte) error {
			b := parent.Bucket(name)
			var last []byte
			return b.ForEach(func(k, v []byte) error {
				if last != nil && bytes.Compare(last, k) >= 0 || !bytes.Equal(b.Get(k), v) {
					a.bad("file: a search for key %x of %s does not find it", k, name)
				}
				last = k
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
