package ledgerdb

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"go.etcd.io/bbolt"

	"ramp/bank/audit"
	"ramp/bank/boltfile"
	"ramp/bank/row"
	"ramp/protocol/contract"
)

// openLog restores the log and compares it with its stored state. It adds a log to files from
// before there was one, and entries that a program without logs has written. Otherwise it reads a
// few tiles and fewer than audit.TileWidth entries, however long the history is.
func (db *DB) openLog() error {
	if err := db.makeLog(); err != nil {
		return err
	}
	for {
		l, last, err := db.readLog()
		if err != nil {
			return err
		}
		if l.tree.Size() == last {
			db.log.Store(l)
			return db.checkDigest(l)
		}
		if err := db.buildLog(l, last); err != nil {
			return err
		}
	}
}

// makeLog makes an empty log in a file without one. It fails if the log's name is damaged.
func (db *DB) makeLog() error {
	missing := false
	err := db.bolt.View(func(tx *bbolt.Tx) error {
		missing = tx.Bucket([]byte(logBucket)) == nil
		if parts := keysOf(tx.Cursor()); missing && parts != "meta tables " {
			return fmt.Errorf("%w: it has the parts %q, and no log", boltfile.ErrDamaged, parts)
		}
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return db.rewrite(beginLog)
}

// rewrite runs a transaction that is not an append.
func (db *DB) rewrite(change func(tx *boltfile.Tx) error) error {
	_, err := db.bolt.Write(change)
	return err
}

func beginLog(tx *boltfile.Tx) (err error) {
	for _, name := range []string{tilesBucket, headsBucket} {
		if _, err := tx.Table(logBucket, name, 0); err != nil {
			return err
		}
	}
	l := &logbook{tree: audit.NewTree()}
	if l.digest, err = digestOf(tx.Bucket([]byte(tablesBucket))); err != nil {
		return err
	}
	return l.store(tx)
}

// readLog restores the stored log, and returns the number of the last entry.
func (db *DB) readLog() (l *logbook, last uint64, err error) {
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		b := openBook(tx)
		if last, err = b.lastEntry(); err != nil {
			return err
		}
		l, err = b.read(last)
		return err
	})
	return l, last, err
}

func (b book) read(last uint64) (*logbook, error) {
	if b.log.Bucket([]byte(tilesBucket)) == nil || b.log.Bucket([]byte(headsBucket)) == nil {
		return nil, fmt.Errorf("%w: the log has lost its tiles or its heads", boltfile.ErrDamaged)
	}
	s, err := decodeLogState(b.log.Get(logStateKey))
	if err != nil {
		return nil, err
	}
	if s.size > last {
		return nil, fmt.Errorf("%w: the log has %d entries, the ledger %d", boltfile.ErrDamaged, s.size, last)
	}
	l := &logbook{digest: s.digest}
	if l.tree, err = audit.Restore(s.size, b, b.entry); err != nil {
		return nil, err
	}
	if l.tree.Root() != s.root {
		return nil, fmt.Errorf("%w: the log's hashes and last entries do not lead to its root at %d entries", boltfile.ErrDamaged, s.size)
	}
	if err := b.readHead(l); err != nil {
		return nil, err
	}
	if s.counts && s.heads != l.heads {
		return nil, fmt.Errorf("%w: the last head has number %d, should have %d", boltfile.ErrDamaged, l.heads, s.heads)
	}
	return l, nil
}

// readHead reads the last head, which must belong to this log.
func (b book) readHead(l *logbook) error {
	k, der := b.log.Bucket([]byte(headsBucket)).Cursor().Last()
	if k == nil {
		return nil
	}
	if len(k) != 8 {
		return fmt.Errorf("%w: a head has a key of %d octets", boltfile.ErrDamaged, len(k))
	}
	l.heads = binary.BigEndian.Uint64(k)
	var err error
	if l.head, l.headID, err = contract.ReadHead(der); err != nil {
		return fmt.Errorf("%w: %w", boltfile.ErrDamaged, err)
	}
	root, err := l.tree.RootAt(l.head.Size, b)
	if err != nil {
		return err
	}
	if hex.EncodeToString(root[:]) != l.head.Root {
		return fmt.Errorf("%w: the head signed at %d entries belongs to another log", boltfile.ErrDamaged, l.head.Size)
	}
	return nil
}

// buildLog adds the next entries that are missing from the log.
func (db *DB) buildLog(l *logbook, last uint64) error {
	return db.rewrite(func(tx *boltfile.Tx) error {
		b, tiles := openBook(tx.Tx), keep(tx)
		for n := l.tree.Size() + 1; n <= last && n%buildStep != 0 || n == l.tree.Size()+1 && n <= last; n++ {
			v, err := b.entry(n)
			if err != nil {
				return err
			}
			if err := l.tree.Append(v, tiles); err != nil {
				return err
			}
		}
		return l.store(tx)
	})
}

// checkDigest adds up the rows if the last transaction was not the log's own: a program
// without logs has written.
func (db *DB) checkDigest(l *logbook) error {
	foreign := false
	err := db.bolt.View(func(tx *bbolt.Tx) error {
		s, err := decodeLogState(tx.Bucket([]byte(logBucket)).Get(logStateKey))
		foreign = s.txid != uint64(tx.ID())
		return err
	})
	if err != nil || !foreign {
		return err
	}
	next := *l
	err = db.rewrite(func(tx *boltfile.Tx) (err error) {
		if next.digest, err = digestOf(tx.Bucket([]byte(tablesBucket))); err != nil {
			return err
		}
		return next.store(tx)
	})
	db.log.Store(&next)
	return err
}

// logState is the stored state of a logbook, enough to notice changed tiles and entries.
type logState struct {
	size   uint64
	root   [audit.HashSize]byte
	digest digest
	txid   uint64 // number of the transaction that wrote it
	heads  uint64 // number of the last head, if they are counted
	counts bool
}

// Formats of a logState. Format 1 does not count heads, and formats 1 and 2 have no sum
// at their end: with a fault in the transaction's number they look as if a program
// without logs had written last.
const (
	logFormat    = 3
	uncounted    = 1 + 8 + audit.HashSize + 8 + 8 // octets in format 1
	unsummed     = uncounted + 8                  // in format 2
	logStateSize = unsummed + 8
)

func (s logState) encode() []byte {
	b := row.New(logFormat, logStateSize).Uint64(s.size).Octets(s.root[:]).Uint64(uint64(s.digest)).Uint64(s.txid).Uint64(s.heads)
	return b.Uint64(sumOf(b))
}

// sumOf is the checksum at the end of a state.
func sumOf(state []byte) uint64 { return uint64(rowNumber([]byte("log"), []byte("state"), state)) }

func decodeLogState(b []byte) (s logState, err error) {
	size := 0
	if len(b) > 0 {
		size = map[byte]int{1: uncounted, 2: unsummed, logFormat: logStateSize}[b[0]]
	}
	switch {
	case len(b) == 0 || len(b) != size:
		return s, fmt.Errorf("%w: the log's state has %d octets or an unknown version", boltfile.ErrDamaged, len(b))
	case size == logStateSize && binary.BigEndian.Uint64(b[unsummed:]) != sumOf(b[:unsummed]):
		return s, fmt.Errorf("%w: the log's state %x does not add up", boltfile.ErrDamaged, b)
	}
	s.size = binary.BigEndian.Uint64(b[1:])
	copy(s.root[:], b[9:])
	s.digest = digest(binary.BigEndian.Uint64(b[9+audit.HashSize:]))
	s.txid = binary.BigEndian.Uint64(b[17+audit.HashSize:])
	if s.counts = size >= unsummed; s.counts {
		s.heads = binary.BigEndian.Uint64(b[uncounted:])
	}
	return s, nil
}
