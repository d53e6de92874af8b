// Package journal stores the state of a user or resource agent in one bbolt file,
// together with the trace: every message that the agent sent or received.
//
// When Append returns, all of its records are on the disk; when it fails, none is, except after
// protocol.ErrDisk: then only opening the journal again shows what it has. The trace becomes
// durable with the next Append or Flush. When the disk is full, the trace is dropped before the
// state, and its oldest messages make room for new ones.
//
// Only one process can have the file open. The error for a second one names it.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/protocol"
)

// Sizes of the file and its mapping.
const (
	initialMap   = 256 << 20 // address space, not memory
	DefaultTrace = 256 << 20 // bytes of messages kept; the oldest go
)

// The buckets of the file.
const (
	tablesBucket = "tables"
	traceBucket  = "trace"       // number -> message
	indexBucket  = "trace-index" // conversation and number -> nothing
)

// Schema is the form of a journal's tables.
const Schema = 7

// form is that of a journal's file.
var form = boltfile.Form{
	Name: "journal", Format: "ramp journal", Schema: Schema,
	Tables:  []string{tablesBucket, traceBucket, indexBucket},
	Deep:    []string{tablesBucket},
	Log:     1 << 20,
	Options: bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: initialMap, NoStatistics: true},
}

// Journal is an open journal. Its methods may be called concurrently.
type Journal struct {
	path   string
	bolt   *boltfile.File
	traced chan struct{} // has room for one

	mu     sync.Mutex // one write at a time; guards the fields below
	broken error
	trace  buffer
}

// Open opens the journal at path, or begins a new one, readable by the owner only. It fails as
// boltfile.Form.Open does. The trace keeps at most traceBytes (0: DefaultTrace) of messages.
func Open(path string, traceBytes int64) (*Journal, error) {
	if traceBytes < 0 {
		return nil, fmt.Errorf("open journal %s: trace of %d bytes: want zero or more", path, traceBytes)
	}
	traceBytes = cmp.Or(traceBytes, DefaultTrace)
	b, err := form.Open(path)
	if err != nil {
		return nil, err
	}
	if b.Suspect() {
		if err = b.ReadAll(); err == nil {
			err = b.Audited()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open journal %s, under which the disk has failed: %w", path, err), b.Close())
		}
	}
	return &Journal{path: path, bolt: b, traced: make(chan struct{}, 1), trace: buffer{keep: traceBytes}}, nil
}

// Close flushes the trace, closes the file and lets others open it.
func (j *Journal) Close() error {
	err := j.Flush()
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Join(err, j.bolt.Close())
}

// Append makes records durable, in order and all or nothing (agents.Store), with the
// oldest buffered messages. If both do not fit, it drops the messages.
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
	uncertain, err := j.bolt.Write(func(tx *boltfile.Tx) error {
		if err := put(tx, records); err != nil {
			return err
		}
		return putTrace(tx, messages, j.trace.keep)
	})
	if err == nil {
		return nil
	}
	if uncertain {
		j.broken = protocol.ErrDisk
	}
	return fmt.Errorf("append to journal %s: %w", j.path, errors.Join(err, j.broken))
}

func put(tx *boltfile.Tx, records []protocol.Record) error {
	open := map[string]*boltfile.Bucket{}
	for _, r := range records {
		b := open[r.Table]
		if b == nil {
			var err error
			if b, err = tx.Table(tablesBucket, r.Table, len(open)); err != nil {
				return err
			}
			open[r.Table] = b
		}
		if err := b.Set(r.Key, r.Value); err != nil {
			return fmt.Errorf("table %s: %w", r.Table, err)
		}
	}
	return nil
}

// Get is the value of a key (protocol.Tables).
func (j *Journal) Get(name, key string) (value []byte, err error) {
	err = j.bolt.LookTables(tablesBucket, func(t *boltfile.Tables) error {
		value, err = t.Get(name, key)
		return err
	})
	return value, j.reading(err)
}

// Keys calls f with the key of every record of a table, in order.
func (j *Journal) Keys(name string, f func(key string) error) error {
	return j.reading(j.bolt.ViewTables(tablesBucket, func(t *boltfile.Tables) error { return t.Keys(name, f) }))
}

// Each calls f with every record of a table (protocol.Tables).
func (j *Journal) Each(name string, f func(key string, value []byte) error) error {
	return j.reading(j.bolt.Each(tablesBucket, name, f))
}

func (j *Journal) reading(err error) error {
	if err != nil {
		return fmt.Errorf("read journal %s: %w", j.path, err)
	}
	return nil
}
