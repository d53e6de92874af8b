package markettest

import (
	"maps"
	"slices"

	"ramp/protocol"
)

// Store is an agents.Store in memory. It survives crashes of its party.
type Store map[string]map[string][]byte

// Each calls f with every record of a table in order of key.
func (s Store) Each(table string, f func(key string, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(s[table])) {
		if err := f(k, s[table][k]); err != nil {
			return err
		}
	}
	return nil
}

// Get is the value of a key (protocol.Tables).
func (s Store) Get(table, key string) ([]byte, error) { return s[table][key], nil }

// Append stores records; one with a nil Value deletes its key.
func (s Store) Append(records []protocol.Record) error {
	for _, r := range records {
		if s[r.Table] == nil {
			s[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(s[r.Table], r.Key)
			continue
		}
		s[r.Table][r.Key] = slices.Clone(r.Value)
	}
	return nil
}
