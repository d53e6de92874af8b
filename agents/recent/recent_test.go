package recent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/recent"
)

// table counts how often its records are read.
type table struct {
	records map[string]string
	reads   int
}

func (t *table) Keys(_ string, f func(string) error) error {
	for _, k := range slices.Sorted(maps.Keys(t.records)) {
		if err := f(k); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) Get(_, key string) ([]byte, error) {
	t.reads++
	if v, ok := t.records[key]; ok {
		return []byte(v), nil
	}
	return nil, nil
}

func (t *table) add(key string, minute int, sweep string) {
	at := time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
	b, _ := json.Marshal(map[string]any{"id": key, "created": at, "sweep": sweep})
	if key == "b" || key == "d" { // as purchases are stored
		b, _ = json.Marshal(map[string]any{"id": key, "purchase": map[string]any{"id": key, "created": at}})
	}
	t.records[key] = string(b)
}

func idOf(value []byte) (string, error) {
	var v struct {
		ID string `json:"id"`
	}
	return v.ID, json.Unmarshal(value, &v)
}

func TestPagesAreInOrderOfTime(t *testing.T) {
	tab, x := &table{records: map[string]string{}}, &recent.Index{}
	page := func(before string, limit int) string {
		t.Helper()
		list, err := recent.Page(x, tab, "t", control.LastCall{Before: before, Limit: limit}, idOf)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, " ")
	}
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	same("nothing", page("", 2), "")
	tab.add("c", 1, "")
	tab.add("a", 3, "")
	tab.add("b", 2, "")
	tab.add("s", 4, "a sweep")
	same("the last two", page("", 2), "b a")
	same("the one before", page("b", 2), "c")
	same("all", page("", 0), "c b a")
	tab.add("d", 2, "")
	same("one is new, at the same time as another", page("", 3), "b d a")
	delete(tab.records, "b")
	same("one is gone", page("", 0), "c d a")
	delete(tab.records, "a")
	tab.add("e", 9, "")
	same("one is gone and one is new", page("", 0), "c d e")
	if _, err := recent.Page(x, tab, "t", control.LastCall{Before: "x"}, idOf); err == nil {
		t.Error("a page before an unknown record")
	}
	tab.records["f"] = "{"
	if _, err := recent.Page(x, tab, "t", control.LastCall{}, idOf); err == nil || !strings.Contains(err.Error(), "record f of t") {
		t.Errorf("a damaged record: %v", err)
	}
}

// A page reads its own records, not all.
func TestAPageReadsItsRecordsOnly(t *testing.T) {
	tab, x := &table{records: map[string]string{}}, &recent.Index{}
	for i := range 1000 {
		tab.add(fmt.Sprintf("p%04d", i), i%60, "")
	}
	for n, want := range []int{1000 + 50, 50, 50} {
		tab.reads = 0
		if _, err := recent.Page(x, tab, "t", control.LastCall{Limit: 50}, idOf); err != nil || tab.reads != want {
			t.Errorf("page %d: %d records are read, want %d; %v", n+1, tab.reads, want, err)
		}
	}
}
