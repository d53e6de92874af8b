package ledgerdb

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/audit"
	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
)

// The log of the entries (package audit) is in the file besides the tables. It grows in
// the transaction that appends the entries.
const (
	headGap   = 100 * time.Millisecond // least time between heads that appends sign
	headAge   = 30 * time.Second       // most age of a head in a proof
	maxHeads  = 4096                   // in the file; the oldest are dropped
	buildStep = 1 << 16                // entries of one transaction while a log is built
)

const (
	logBucket   = "log"
	tilesBucket = "tiles"
	headsBucket = "heads"
)

var logStateKey = []byte("state")

// Sign signs a head as the bank; nil: heads cannot be signed here.
type Sign func(h contract.Head) ([]byte, error)

// logbook is the state of the log after a transaction. A committed one does not change.
type logbook struct {
	tree   *audit.Tree
	digest digest
	heads  uint64 // number of the last head, or zero
	head   contract.Head
	headID string
	signed time.Time // when this process signed the last one
}

// book is the log within one transaction: its stored tiles and heads.
type book struct {
	log, tables *bbolt.Bucket
}

func openBook(tx *bbolt.Tx) book {
	return book{tx.Bucket([]byte(logBucket)), tx.Bucket([]byte(tablesBucket))}
}

func tileKey(row int, number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(row)}, number)
}

// Tile reads a tile (audit.Tiles).
func (b book) Tile(row int, number uint64) ([]byte, error) {
	v := b.log.Bucket([]byte(tilesBucket)).Get(tileKey(row, number))
	if v == nil {
		return nil, fmt.Errorf("%w: tile %d of row %d of the log is missing", boltfile.ErrDamaged, number, row)
	}
	return v, nil
}

func keep(tx *boltfile.Tx) func(t audit.Tile) error {
	tiles := tx.In(logBucket, tilesBucket)
	tiles.FillPercent = fullPages
	return func(t audit.Tile) error { return tiles.Put(tileKey(t.Row, t.Number), t.Hashes) }
}

func (b book) entry(number uint64) ([]byte, error) {
	entries := b.tables.Bucket([]byte(ledger.TableEntries))
	if entries != nil {
		if v := entries.Get([]byte(ledger.NumberKey(number))); v != nil {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%w: entry %d is missing", boltfile.ErrDamaged, number)
}

// lastEntry is the number of the last entry, or zero.
func (b book) lastEntry() (uint64, error) {
	entries := b.tables.Bucket([]byte(ledger.TableEntries))
	if entries == nil {
		return 0, nil
	}
	k, _ := entries.Cursor().Last()
	if k == nil {
		return 0, nil
	}
	if len(k) != 8 {
		return 0, fmt.Errorf("%w: an entry has a key of %d octets", boltfile.ErrDamaged, len(k))
	}
	return binary.BigEndian.Uint64(k), nil
}

// extend adds the entries among records to the log. They come in order and without a gap.
func (l *logbook) extend(tx *boltfile.Tx, records []protocol.Record, d digest) (*logbook, error) {
	next := *l
	next.tree, next.digest = l.tree.Clone(), d
	tiles := keep(tx)
	for i := range records {
		r := &records[i]
		if r.Table != ledger.TableEntries {
			continue
		}
		if n := next.tree.Size() + 1; r.Value == nil || r.Key != ledger.NumberKey(n) {
			return nil, fmt.Errorf("entry %x is not the next, %d: entries never change", r.Key, n)
		}
		if err := next.tree.Append(r.Value, tiles); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

func (l *logbook) store(tx *boltfile.Tx) error {
	return tx.In(logBucket, "").Put(logStateKey, l.state(tx.ID()))
}

// state is the stored state of a log that a transaction leaves.
func (l *logbook) state(txid int) []byte {
	return logState{size: l.tree.Size(), root: l.tree.Root(), digest: l.digest, txid: uint64(txid), heads: l.heads}.encode()
}

// seal signs a head of the present log and stores it.
func (l *logbook) seal(tx *boltfile.Tx, sign Sign, now time.Time) error {
	h, err := l.next(tx, now)
	if err != nil {
		return err
	}
	der, err := sign(h)
	if err != nil {
		return fmt.Errorf("sign a head of the log: %w", err)
	}
	if l.head, l.headID, err = contract.ReadHead(der); err != nil {
		return err
	}
	l.heads, l.signed = l.heads+1, now
	heads := tx.In(logBucket, headsBucket)
	if l.heads > maxHeads {
		if err := heads.Delete(binary.BigEndian.AppendUint64(nil, l.heads-maxHeads)); err != nil {
			return err
		}
	}
	return heads.Put(binary.BigEndian.AppendUint64(nil, l.heads), der)
}

// next is the head to sign. Its time is not before that of the last head, whatever the clock says.
func (l *logbook) next(tx *boltfile.Tx, now time.Time) (contract.Head, error) {
	state, err := history{tx.Bucket([]byte(tablesBucket))}.state()
	if err != nil {
		return contract.Head{}, err
	}
	root := l.tree.Root()
	h := contract.Head{
		Version: contract.HeadVersion, Bank: state.Bank, Size: l.tree.Size(), Root: hex.EncodeToString(root[:]),
		Time: now.UTC(), Previous: l.headID,
	}
	if h.Time.Before(l.head.Time) {
		h.Time = l.head.Time
	}
	if l.heads == 0 {
		h.Previous = hex.EncodeToString(make([]byte, audit.HashSize))
	}
	return h, nil
}

// due reports whether a head should be signed with an append.
func (l *logbook) due(now time.Time) bool { return l.unsigned() && now.Sub(l.signed) >= headGap }

// unsigned reports whether there are entries without a head.
func (l *logbook) unsigned() bool {
	return l.tree.Size() > l.head.Size || l.tree.Size() > 0 && l.heads == 0
}

var errNoSigner = errors.New("no key to sign heads of the log with")
