// Package recent pages through the purchases, runs or jobs of an agent's journal by time. It
// remembers which record is from when, so a page decodes the records that it shows, and not every
// record there is. The runs of sweeps are left out: a sweep has a list of its own.
package recent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"ramp/agents/control"
)

// Table is a table of a journal.
type Table interface {
	Keys(table string, f func(key string) error) error
	Get(table, key string) (value []byte, err error)
}

// Index is the order of one table. The zero Index knows nothing yet.
type Index struct {
	mu    sync.Mutex
	known map[string]bool
	order []entry // those that the list has, the oldest first
}

type entry struct {
	at  time.Time
	key string
}

// Page reads the records of the page that a call asks for, the oldest first. A nil Index is as
// good as the zero one.
func Page[T any](x *Index, t Table, name string, q control.LastCall, read func(value []byte) (T, error)) ([]T, error) {
	if x == nil {
		x = &Index{}
	}
	page, err := x.page(t, name, q)
	if err != nil {
		return nil, err
	}
	list := make([]T, 0, len(page))
	for _, e := range page {
		value, err := t.Get(name, e.key)
		if err != nil {
			return nil, err
		}
		if value == nil { // it was deleted just now
			continue
		}
		v, err := read(value)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (x *Index) page(t Table, name string, q control.LastCall) ([]entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.catchUp(t, name); err != nil {
		return nil, err
	}
	page, err := control.Page(x.order, q, func(e entry) string { return e.key })
	return slices.Clone(page), err
}

// catchUp learns the records that are new, and begins again if others are gone.
func (x *Index) catchUp(t Table, name string) error {
	fresh, gone, err := unknown(t, name, x.known)
	if err == nil && gone {
		x.known, x.order = nil, nil
		fresh, _, err = unknown(t, name, nil)
	}
	if err != nil || len(fresh) == 0 {
		return err
	}
	for _, key := range fresh {
		if err := x.learn(t, name, key); err != nil {
			return err
		}
	}
	slices.SortFunc(x.order, func(a, b entry) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.key, b.key)) })
	return nil
}

// unknown lists the records that are not known; gone: of those that are, some are not there any more.
func unknown(t Table, name string, known map[string]bool) (list []string, gone bool, err error) {
	all := 0
	err = t.Keys(name, func(key string) error {
		if all++; !known[key] {
			list = append(list, key)
		}
		return nil
	})
	return list, len(known)+len(list) != all, err
}

// learn reads when a record is from. Neither that nor its sweep ever changes.
func (x *Index) learn(t Table, name, key string) error {
	value, err := t.Get(name, key)
	if err != nil || value == nil { // it was deleted just now
		return err
	}
	type row struct {
		Created time.Time `json:"created"`
		Sweep   string    `json:"sweep"`
	}
	var r struct { // a run, or a purchase
		row
		Purchase row `json:"purchase"`
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return fmt.Errorf("record %s of %s: %w", key, name, err)
	}
	if x.known == nil {
		x.known = map[string]bool{}
	}
	x.known[key] = true
	if r.Sweep == "" {
		x.order = append(x.order, entry{cmp.Or(r.Created, r.Purchase.Created), key})
	}
	return nil
}
