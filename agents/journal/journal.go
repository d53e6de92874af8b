// Package journal keeps the state of a user or resource agent in one bbolt
// file, and beside it the trace: every message that the agent sent or received.
//
// What Append has returned for is on the disk, all of it; what it has refused
// is not there at all. The trace is lazier: it is durable with the next Append
// or Flush, it is given up before the state is when the disk is full, and its
// oldest messages make room for new ones.
//
// Only one process can have the file open. A second one is told which.
package journal

import (
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/protocol"
)

// Bounds. What is beyond them is an error, unless said otherwise.
const (
	maxTables    = 64        // tables in one append
	maxTableLen  = 64        // bytes of a table's name
	initialMap   = 256 << 20 // address space, not memory
	DefaultTrace = 256 << 20 // bytes of messages kept; the oldest go
)

// The buckets of the file.
var (
	tablesBucket = []byte("tables")
	traceBucket  = []byte("trace")       // number -> message
	indexBucket  = []byte("trace-index") // conversation and number -> nothing
)

// ErrUncertain is returned by Append once the disk has failed between writing
// and confirming: what is there cannot be known until the file is opened again.
const ErrUncertain protocol.Uncertain = "disk failed while confirming a write: open the journal again"

// form is that of a journal's file.
var form = boltfile.Form{
	Name: "journal", Format: "ramp journal", Schema: 1,
	Tables:  []string{string(tablesBucket), string(traceBucket), string(indexBucket)},
	Deep:    []string{string(tablesBucket)},
	Options: bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: initialMap, NoStatistics: true},
}

// Journal is an open journal. Its methods may be called at the same time.
type Journal struct {
	path string
	bolt *boltfile.File

	mu     sync.Mutex // one write at a time; guards what follows
	broken error
	trace  buffer
}

// Open opens the journal at path, or begins a new one, readable by the owner
// only. It fails as boltfile.Form.Open does. The trace
// keeps at most traceBytes (0: DefaultTrace) of messages.
func Open(path string, traceBytes int64) (*Journal, error) {
	if traceBytes < 0 {
		return nil, fmt.Errorf("open journal %s: trace of %d bytes: want zero or more", path, traceBytes)
	}
	if traceBytes == 0 {
		traceBytes = DefaultTrace
	}
	b, err := form.Open(path)
	if err != nil {
		return nil, err
	}
	return &Journal{path: path, bolt: b, trace: buffer{keep: traceBytes}}, nil
}

// Close flushes the trace, closes the file and lets others open it.
func (j *Journal) Close() error {
	err := j.Flush()
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(err, j.bolt.Close())
}

// Path is where the journal is.
func (j *Journal) Path() string { return j.path }

// Append makes records durable, in order and all or nothing (agents.Store),
// with the first of the messages traced so far. If both do not fit, those are given
// up.
func (j *Journal) Append(records []protocol.Record) error {
	if len(records) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	messages := j.trace.take(sharedTrace)
	err := j.update(records, messages)
	if err != nil && len(messages) > 0 && j.broken == nil {
		j.trace.lost += len(messages)
		err = j.update(records, nil)
	}
	return err
}

// update writes one transaction.
func (j *Journal) update(records []protocol.Record, messages []Message) error {
	if j.broken != nil {
		return j.broken
	}
	txid := 0
	err := boltfile.Guard(func() error {
		return j.bolt.Update(func(tx *bbolt.Tx) error {
			txid = tx.ID()
			if err := put(tx, records); err != nil {
				return err
			}
			return putTrace(tx, messages, j.trace.keep)
		})
	})
	if err == nil {
		return nil
	}
	if j.reached(txid) {
		j.broken = ErrUncertain
	}
	return fmt.Errorf("append to journal %s: %w", j.path, errors.Join(err, j.broken))
}

// reached reports whether readers see a transaction that was not confirmed.
func (j *Journal) reached(txid int) (seen bool) {
	err := boltfile.Guard(func() error {
		return j.bolt.View(func(tx *bbolt.Tx) error {
			seen = txid != 0 && tx.ID() >= txid
			return nil
		})
	})
	return seen || err != nil
}

func put(tx *bbolt.Tx, records []protocol.Record) error {
	tables := tx.Bucket(tablesBucket)
	open := map[string]*bbolt.Bucket{}
	for _, r := range records {
		b := open[r.Table]
		if b == nil {
			var err error
			if b, err = table(tables, r.Table, len(open)); err != nil {
				return err
			}
			open[r.Table] = b
		}
		if err := putOne(b, r); err != nil {
			return fmt.Errorf("table %s: %w", r.Table, err)
		}
	}
	return nil
}

func putOne(b *bbolt.Bucket, r protocol.Record) error {
	if r.Value == nil {
		return b.Delete([]byte(r.Key))
	}
	return b.Put([]byte(r.Key), r.Value)
}

func table(tables *bbolt.Bucket, name string, open int) (*bbolt.Bucket, error) {
	if name == "" || len(name) > maxTableLen {
		return nil, fmt.Errorf("table name of %d bytes, want 1..%d", len(name), maxTableLen)
	}
	if open >= maxTables {
		return nil, fmt.Errorf("more than %d tables in one append", maxTables)
	}
	b, err := tables.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", name, err)
	}
	return b, nil
}

// Each calls f with every record of a table in order of key, until f fails
// (protocol.Tables). The value is only good during the call. f must not append.
func (j *Journal) Each(name string, f func(key string, value []byte) error) error {
	calling := false
	var value []byte
	err := boltfile.GuardExcept(&calling, func() error {
		return j.bolt.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket(tablesBucket).Bucket([]byte(name))
			if b == nil {
				return nil
			}
			return b.ForEach(func(k, v []byte) error {
				key := string(k)
				value = append(value[:0], v...) // here, where a damaged page is noticed
				calling = true
				err := f(key, value)
				calling = false
				return err
			})
		})
	})
	if err != nil {
		return fmt.Errorf("read journal %s: %w", j.path, err)
	}
	return nil
}
