package command

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
	"ramp/protocol"
)

// sample keeps what the role wants saved, bundle by bundle. The goroutine that
// owns the role writes it; it is read when that has nothing to do.
type sample struct {
	agents.Role
	on    bool
	saves [][]protocol.Record
}

// maxSample bounds the bundles of a sample.
const maxSample = 1 << 16

// Receive notes the records of a settlement.
func (s *sample) Receive(now time.Time, m protocol.Message) protocol.Output {
	out := s.Role.Receive(now, m)
	if s.on && len(out.Save) > 0 && len(s.saves) < maxSample {
		s.saves = append(s.saves, out.Save)
	}
	return out
}

// turn starts or stops noting, and empties the sample when it starts.
func (b *bankBench) turn(ctx context.Context, on bool) error {
	return b.runner.Do(ctx, func(time.Time, agents.Role) protocol.Output {
		if b.sample.on = on; on {
			b.sample.saves = nil
		}
		return protocol.Output{}
	})
}

const copyName = "copy.db"

// openCopy opens a copy of the ledger as it is for bbolt's own Batch.
func (b *bankBench) openCopy(clients int) (*bbolt.DB, error) {
	if err := b.copyLedger(); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(filepath.Join(b.dir, copyName), 0o600, nil)
	if err != nil {
		return nil, err
	}
	db.MaxBatchSize = max(clients, 1)
	db.MaxBatchDelay = time.Millisecond
	return db, nil
}

// copyLedger copies the ledger as it is: nothing is being written.
func (b *bankBench) copyLedger() error {
	from, err := os.Open(filepath.Join(b.dir, ledgerName))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(b.dir, copyName))
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

// bboltBatch puts the sample, bundle by bundle and over again, into a copy of the
// ledger, by bbolt's own Batch.
func (b *bankBench) bboltBatch(ctx context.Context, db *bbolt.DB, clients int) (int64, time.Duration, error) {
	saves := b.sample.saves
	var next atomic.Uint64
	return b.together(ctx, clients, func(int) error {
		records := saves[next.Add(1)%uint64(len(saves))]
		return db.Batch(func(tx *bbolt.Tx) error { return putRecords(tx, records) })
	})
}

// putRecords puts records where the ledger has its tables.
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
