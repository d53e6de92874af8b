package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/protocol"
)

// Bounds of the trace.
const (
	maxBuffered      = 4096    // messages not yet on the disk; then Trace flushes
	maxBufferedBytes = 8 << 20 // likewise
	maxDir           = 16      // bytes of a direction; more are cut off
	MaxTraced        = 4096    // messages that one Conversation returns, the newest
	// sharedTrace is how many messages an Append writes too. Those of a whole auction
	// would take longer than the records, and the sender waits.
	sharedTrace = 16
	// flushedTrace is how many messages a Flush writes at once, so that an Append
	// does not wait long for it.
	flushedTrace = 256
)

// Message is a traced message.
type Message struct {
	At           time.Time
	Dir          string // "in" or "out"
	Conversation string
	Encoded      []byte
}

func (m *Message) size() int64 { return int64(len(m.Encoded) + len(m.Conversation) + rowExtra) }

// rowExtra is about the overhead of a stored message in bytes.
const rowExtra = 64

// buffer is the messages that are not on the disk yet.
type buffer struct {
	keep     int64 // bytes that the trace may have on the disk
	messages []Message
	bytes    int64
	lost     int
}

// take is the oldest messages, at most so many.
func (b *buffer) take(most int) []Message {
	ms := b.messages[:min(most, len(b.messages))]
	for i := range ms {
		b.bytes -= ms[i].size()
	}
	if b.messages = b.messages[len(ms):]; len(b.messages) == 0 {
		b.messages = nil
	}
	return ms
}

// Trace records a message. It is durable with the next Flush, or an Append before. A full buffer is
// flushed here, and dropped if that fails; Lost counts the dropped messages.
func (j *Journal) Trace(at time.Time, dir, conversation string, encoded []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := Message{
		At: at, Dir: dir[:min(len(dir), maxDir)], Encoded: append([]byte(nil), encoded...),
		Conversation: conversation[:min(len(conversation), protocol.MaxConversation)],
	}
	j.trace.messages = append(j.trace.messages, m)
	j.trace.bytes += m.size()
	j.ask()
	if len(j.trace.messages) >= maxBuffered || j.trace.bytes >= maxBufferedBytes {
		_ = j.flush(maxBuffered) // counted in Lost
	}
}

// ask has whoever waits for Traced call Flush.
func (j *Journal) ask() {
	select {
	case j.traced <- struct{}{}:
	default:
	}
}

// Traced receives if messages may wait for a Flush.
func (j *Journal) Traced() <-chan struct{} { return j.traced }

// Flush makes the messages traced so far durable.
func (j *Journal) Flush() error {
	for range maxBuffered/flushedTrace + 1 {
		if more, err := j.flushSome(); err != nil || !more {
			return err
		}
	}
	return nil
}

// flushSome flushes the oldest messages and reports whether there are more.
func (j *Journal) flushSome() (more bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.flush(flushedTrace)
	return len(j.trace.messages) > 0, err
}

func (j *Journal) flush(most int) error {
	messages := j.trace.take(most)
	if len(messages) == 0 {
		return nil
	}
	err := j.update(nil, messages)
	if err != nil {
		j.trace.lost += len(messages)
		j.ask() // for the rest: there may be room again
	}
	return err
}

// Conversation is the newest MaxTraced messages of a conversation, buffered ones
// included, oldest first.
func (j *Journal) Conversation(name string) ([]Message, error) {
	if err := j.Flush(); err != nil {
		return nil, err
	}
	var ms []Message
	err := j.bolt.View(func(tx *bbolt.Tx) (err error) {
		ms, err = conversation(tx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("trace in journal %s: %w", j.path, err)
	}
	return ms, nil
}

func conversation(tx *bbolt.Tx, name string) ([]Message, error) {
	log, index := tx.Bucket([]byte(traceBucket)), tx.Bucket([]byte(indexBucket))
	var ms []Message
	c := index.Cursor()
	prefix := name + "\x00"
	for k, _ := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, _ = c.Next() {
		if len(k) != len(prefix)+8 {
			continue // a conversation whose name continues after a zero
		}
		m, err := decodeMessage(log.Get(k[len(prefix):]))
		if err != nil {
			return nil, err
		}
		if ms = append(ms, m); len(ms) > MaxTraced {
			ms = ms[1:]
		}
	}
	return ms, nil
}

// putTrace appends messages to the log, indexes them by conversation, and removes the oldest beyond
// keep bytes. The log's sequence is its next number; the index's is the bytes of the log.
func putTrace(tx *boltfile.Tx, messages []Message, keep int64) error {
	if len(messages) == 0 {
		return nil
	}
	log, index := tx.In(traceBucket, ""), tx.In(indexBucket, "")
	log.FillPercent = fullPages
	size := int64(index.Sequence())
	for i := range messages {
		m := &messages[i]
		n := log.Sequence() + 1
		key := binary.BigEndian.AppendUint64(nil, n)
		err := errors.Join(log.SetSequence(n), log.Put(key, m.encode()), index.Put(indexKey(m.Conversation, key), nil))
		if err != nil {
			return err
		}
		size += m.size()
	}
	size, err := trim(log, index, size, keep)
	return errors.Join(err, index.SetSequence(uint64(size)))
}

// fullPages is how full the pages get of a table that only grows at its end.
const fullPages = 0.95

func trim(log, index *boltfile.Bucket, size, keep int64) (int64, error) {
	c := log.Cursor()
	for k, v := c.First(); k != nil && size > keep; k, v = c.First() {
		m, err := decodeMessage(v)
		if err != nil {
			return size, err
		}
		size -= m.size()
		if err := errors.Join(index.Delete(indexKey(m.Conversation, k)), log.Delete(k)); err != nil {
			return size, err
		}
	}
	return size, nil
}

func indexKey(conversation string, number []byte) []byte {
	return append([]byte(conversation+"\x00"), number...)
}

// messageVersion begins every stored message.
const messageVersion = 1

func (m *Message) encode() []byte {
	b := make([]byte, 0, len(m.Encoded)+len(m.Conversation)+len(m.Dir)+16)
	b = append(b, messageVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(m.At.UnixNano()))
	b = append(b, byte(len(m.Dir)))
	b = append(b, m.Dir...)
	b = append(b, byte(len(m.Conversation)))
	b = append(b, m.Conversation...)
	return append(b, m.Encoded...)
}

var errMessage = errors.New("damaged: a traced message cannot be read")

func decodeMessage(b []byte) (Message, error) {
	if len(b) < 11 || b[0] != messageVersion {
		return Message{}, errMessage
	}
	m := Message{At: time.Unix(0, int64(binary.BigEndian.Uint64(b[1:]))).UTC()}
	b = b[9:]
	for _, s := range []*string{&m.Dir, &m.Conversation} {
		if len(b) < 1 || len(b) < 1+int(b[0]) {
			return Message{}, errMessage
		}
		n := 1 + int(b[0])
		*s, b = string(b[1:n]), b[n:]
	}
	m.Encoded = append([]byte(nil), b...)
	return m, nil
}
