package bench

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/protocol"
)

// sample keeps the role's records, bundle by bundle. The goroutine that owns the role writes
// it; others read it while the role is idle.
type sample struct {
	agents.Role
	on    bool
	saves [][]protocol.Record
}

// maxSample bounds the bundles of a sample.
const maxSample = 1 << 16

func (s *sample) Receive(now time.Time, m protocol.Message) protocol.Output {
	out := s.Role.Receive(now, m)
	if s.on && len(out.Save) > 0 && len(s.saves) < maxSample {
		s.saves = append(s.saves, out.Save)
	}
	return out
}

// turn starts or stops recording. Starting empties the sample.
func (b *BankBench) turn(ctx context.Context, on bool) error {
	return b.runner.Do(ctx, func(time.Time, agents.Role) protocol.Output {
		if b.sample.on = on; on {
			b.sample.saves = nil
		}
		return protocol.Output{}
	})
}

const copyName = "copy.db"

// openCopy opens a copy of the ledger for bbolt's own Batch.
func (b *BankBench) openCopy(clients int) (*bbolt.DB, error) {
	if err := b.copyLedger(); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(b.Dir, copyName), 0o600, nil)
	if err != nil {
		return nil, err
	}
	db.MaxBatchSize = max(clients, 1)
	db.MaxBatchDelay = time.Millisecond
	return db, nil
}

// copyLedger copies the ledger while nothing writes to it.
func (b *BankBench) copyLedger() error {
	from, err := os.Open(filepath.Join(b.Dir, config.LedgerName))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(b.Dir, copyName))
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

// bboltBatch repeatedly puts the sample, bundle by bundle, into a copy of the ledger by
// bbolt's own Batch.
func (b *BankBench) bboltBatch(ctx context.Context, db *bbolt.DB, clients int) (int64, time.Duration, error) {
	saves := b.sample.saves
	var next atomic.Uint64
	return b.together(ctx, clients, func(int) error {
		records := saves[next.Add(1)%uint64(len(saves))]
		return db.Batch(func(tx *bbolt.Tx) error { return putRecords(tx, records) })
	})
}

func putRecords(tx *bbolt.Tx, records []protocol.Record) error {
	tables := tx.Bucket([]byte("tables"))
	for _, r := range records {
		table, err := tables.CreateBucketIfNotExists([]byte(r.Table))
		if err != nil {
			return err
		}
		if r.Value == nil {
			err = table.Delete([]byte(r.Key))
		} else {
			err = table.Put([]byte(r.Key), r.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
