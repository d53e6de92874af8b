package ledgeretcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"ramp/protocol"
)

// The mirror's position is the last entry that it has applied.
const (
	positionTable = "journal"
	positionKey   = "applied"
	positionSize  = 8 + sha256.Size
)

// PrefixOf is the prefix of all keys of a bank in etcd.
func PrefixOf(bank protocol.AgentID) string { return "/ramp/bank/" + string(bank) + "/" }

func (s *Store) key(format string, args ...any) string {
	return PrefixOf(s.cfg.Bank) + fmt.Sprintf(format, args...)
}

func (s *Store) leaderKey() string          { return s.key("leader") }
func (s *Store) journalKey(n uint64) string { return s.key("journal/%016x", n) }
func (s *Store) partsOf(n uint64) string    { return s.key("part/%016x/", n) }
func (s *Store) partKey(n uint64, term int64, i int) string {
	return s.partsOf(n) + fmt.Sprintf("%016x/%02x", term, i)
}

// position is the record with the mirror's position.
func position(number uint64, hash [sha256.Size]byte) protocol.Record {
	v := binary.BigEndian.AppendUint64(nil, number)
	return protocol.Record{Table: positionTable, Key: positionKey, Value: append(v, hash[:]...)}
}

// ship makes a transaction of the mirror an entry of the journal (ledgerdb.Ship).
func (s *Store) ship(records []protocol.Record, head []byte) ([]protocol.Record, error) {
	if err := s.stopped(); err != nil {
		return nil, err
	}
	payload, err := Entry{records, head}.Encode()
	if err != nil {
		return nil, err
	}
	h := header{previous: s.previous, term: s.lead.term}
	value := append(h.encode(), payload...)
	if len(payload) > maxInline {
		if value, err = s.putParts(h, payload); err != nil {
			return nil, err
		}
	}
	if err := s.commit(s.journalKey(s.next), value, true); err != nil {
		return nil, err
	}
	hash := hashEntry(value, nil)
	if len(payload) > maxInline {
		hash = hashEntry(value, payload)
	}
	at := position(s.next, hash)
	s.next, s.previous = s.next+1, hash
	return []protocol.Record{at}, nil
}

// putParts stores a large payload and returns the entry that names it. Parts
// without an entry mean nothing.
func (s *Store) putParts(h header, payload []byte) ([]byte, error) {
	for b := payload; len(b) > 0; h.parts++ {
		n := min(len(b), maxInline)
		if err := s.commit(s.partKey(s.next, h.term, h.parts), b[:n], false); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return h.encode(), nil
}

// commit puts one value while this agent leads. Except with ErrUncertain the result is
// known when it returns. A fresh key must not exist yet.
func (s *Store) commit(key string, value []byte, fresh bool) error {
	t := transaction{
		If:   []condition{createdAt(s.leaderKey(), s.lead.term)},
		Then: []request{{Put: &putRow{Key: []byte(key), Value: value}}},
		Else: []request{{Get: &getRange{Key: []byte(key)}}},
	}
	if fresh {
		t.If = append(t.If, createdAt(key, 0))
		if s.next > 1 { // the cluster may have gone back
			t.If = append(t.If, exists(s.journalKey(s.next-1)))
		}
	}
	wait := askFirst
	for tries := 0; ; tries++ {
		if !s.lead.holds() {
			return s.give(tries)
		}
		written, err := s.try(wait, t, value)
		switch {
		case err == nil && written:
			return nil
		case err == nil:
			s.lose(ErrDeposed)
			return ErrDeposed
		case tries == 0 && refused(err):
			return fmt.Errorf("write to etcd: %w", err)
		}
		wait = min(2*wait, askMost)
		time.Sleep(pauseTime)
	}
}

// give is the error of a leader whose lease is over.
func (s *Store) give(tries int) error {
	why := ErrDeposed
	if tries > 0 {
		why = ErrUncertain
	}
	s.lose(why)
	return why
}

// try reports whether the value was written; false: it was not, and never will be.
func (s *Store) try(wait time.Duration, t transaction, value []byte) (bool, error) {
	answer, err := s.cluster.do(context.Background(), wait, t)
	if err != nil || answer.Succeeded {
		return err == nil, err
	}
	there := answer.Responses[0].Range.Rows // from an earlier try whose answer was lost
	return len(there) == 1 && bytes.Equal(there[0].Value, value), nil
}
