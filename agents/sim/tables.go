package sim

import (
	"maps"
	"slices"

	"ramp/protocol"
)

// Tables are the records of one agent in memory, by table and key. They are an
// agents.Store that never fails.
type Tables map[string]map[string][]byte

// Each calls f with every record of a table in order of key.
func (t Tables) Each(table string, f func(key string, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(t[table])) {
		if err := f(k, t[table][k]); err != nil {
			return err
		}
	}
	return nil
}

// Get is the value of a record (protocol.Tables).
func (t Tables) Get(table, key string) ([]byte, error) { return t[table][key], nil }

// Len is how many records a table has.
func (t Tables) Len(table string) int { return len(t[table]) }

// Append stores copies of the records; one with a nil Value deletes its key.
func (t Tables) Append(records []protocol.Record) error {
	t.apply(records)
	return nil
}

func (t Tables) apply(records []protocol.Record) {
	for _, r := range records {
		if t[r.Table] == nil {
			t[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(t[r.Table], r.Key)
			continue
		}
		t[r.Table][r.Key] = slices.Clone(r.Value)
	}
}

// Copy returns tables with the same records.
func (t Tables) Copy() Tables {
	c := Tables{}
	for name, rows := range t {
		c[name] = maps.Clone(rows)
	}
	return c
}
