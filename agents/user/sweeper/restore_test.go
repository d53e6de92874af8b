package sweeper_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"ramp/agents/user/sweep"
	"ramp/agents/user/sweep/plan"
	"ramp/agents/user/sweeper"
)

// tables are stored rows, which are read in order of key.
type tables map[string]map[string][]byte

func (t tables) Each(table string, f func(string, []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(t[table])) {
		if err := f(key, t[table][key]); err != nil {
			return err
		}
	}
	return nil
}

func (t tables) Get(table, key string) ([]byte, error) { return t[table][key], nil }

func (t tables) put(tb testing.TB, table, key string, v any) {
	tb.Helper()
	value, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	if t[table] == nil {
		t[table] = map[string][]byte{}
	}
	t[table][key] = value
}

// A sweep of many short leases gets its leases back by their numbers: as text, l10000 comes
// before l9999.
func TestMoreThan9999LeasesKeepTheirNumbers(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte("task: {command: [\"true\"], wall: 1m}\nparameters: {x: {values: [1, 2]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := tables{}
	rows.put(t, sweeper.Table, "s", map[string]any{"order": map[string]any{"id": "s"}, "plan": p, "terms": sweep.Terms{Strategy: p.Strategy}})
	const leases = 10_001
	for n := range leases {
		rows.put(t, sweeper.TableLeases, fmt.Sprintf("s.l%04d", n+1), sweep.Lease{Site: fmt.Sprint("site", n+1), Signed: true, Closed: true, Paid: 1})
	}
	s := sweeper.New("ann@cluster", nil)
	if err := s.Restore(rows); err != nil {
		t.Fatal(err)
	}
	list, ok := s.Ledger("s")
	if !ok || len(list) != leases {
		t.Fatalf("%d leases, want %d", len(list), leases)
	}
	for _, e := range list {
		if e.Lease != "s.l"+fmt.Sprintf("%04s", e.Resource[len("site"):]) {
			t.Fatalf("lease %s is of %s", e.Lease, e.Resource)
		}
	}
}
