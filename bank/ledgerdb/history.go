package ledgerdb

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/boltfile"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// MaxPage bounds the entries of one answer; further ones are on the next page.
const MaxPage = 1024

// Entries are at most limit (1..MaxPage) entries in order of number, the first
// at or after number from.
func (db *DB) Entries(from uint64, limit int) ([]ledger.Entry, error) {
	var es []ledger.Entry
	err := db.view(func(h history) error {
		return h.scan(ledger.TableEntries, ledger.NumberKey(from), func(k string, v []byte) (bool, error) {
			if len(es) >= min(limit, MaxPage) {
				return false, nil
			}
			e, err := h.decode(k, v)
			es = append(es, e)
			return true, err
		})
	})
	return es, err
}

// Query asks for the entries of one account.
type Query struct {
	Account  protocol.AgentID
	Currency string
	From, To time.Time // From inclusive, To exclusive; zero To: no end
	After    uint64    // only entries above this number: for the next page
	Before   uint64    // only the last entries below this number; 0: the first ones above After
	Limit    int       // 1..MaxPage
}

// Statement is the entries of an account in a time.
type Statement struct {
	Entries []ledger.Entry
	More    bool // there are more: ask again with After or Before
}

// Statement lists the entries of an account, in order of number. Unknown accounts and currencies
// have none. It takes time in proportion to the answer, and to the logarithm of the history.
func (db *DB) Statement(q Query) (Statement, error) {
	var s Statement
	err := db.view(func(h history) error {
		line, err := h.line(q.Account, q.Currency)
		if err != nil || line == 0 {
			return err
		}
		first, err := h.since(q.From)
		if err != nil {
			return err
		}
		first = max(first, q.After+1)
		end := ^uint64(0)
		if !q.To.IsZero() {
			if end, err = h.since(q.To); err != nil {
				return err
			}
		}
		if q.Before > 0 {
			end = min(end, q.Before)
		}
		s, err = h.statement(line, first, end, min(q.Limit, MaxPage), q.Before > 0)
		return err
	})
	return s, err
}

// Outcome looks up the decision about a contract, for ledger.Recall and for questions
// about old contracts.
func (db *DB) Outcome(id protocol.ContractID) (ledger.Lookup, error) {
	var found ledger.Lookup
	key, err := ledger.ContractKey(id)
	if err != nil {
		return found, err
	}
	err = db.view(func(h history) error {
		s, err := h.state()
		if err != nil {
			return err
		}
		found.AsOf = s.Entry
		v := h.get(ledger.TableContracts, key)
		if v == nil {
			return nil
		}
		found.Found = true
		found.Receipt, err = h.receipt(s.Bank, id, key, v)
		return err
	})
	return found, err
}

// history reads within one transaction.
type history struct {
	tables *bbolt.Bucket
}

func (db *DB) view(f func(h history) error) error {
	return reading(db.path, db.bolt.Look(func(tx *bbolt.Tx) error { return f(history{tx.Bucket([]byte(tablesBucket))}) }))
}

// scan visits a table from the first key not below from, until visit is done.
func (h history) scan(table, from string, visit func(key string, value []byte) (more bool, err error)) error {
	b := h.tables.Bucket([]byte(table))
	if b == nil {
		return nil
	}
	c := b.Cursor()
	for k, v := c.Seek([]byte(from)); k != nil; k, v = c.Next() {
		if more, err := visit(string(k), v); err != nil || !more {
			return err
		}
	}
	return nil
}

func (h history) get(table, key string) []byte {
	b := h.tables.Bucket([]byte(table))
	if b == nil {
		return nil
	}
	return b.Get([]byte(key))
}

func (h history) state() (ledger.State, error) {
	v := h.get(ledger.TableState, ledger.StateKey)
	if v == nil {
		return ledger.State{}, nil
	}
	return ledger.DecodeState(v)
}

// line is the number of an account's line, or zero.
func (h history) line(id protocol.AgentID, currency string) (uint32, error) {
	v := h.get(ledger.TableAccounts, string(id))
	if v == nil {
		return 0, nil
	}
	_, lines, err := ledger.DecodeAccount(v)
	return lines[currency], err
}

func (h history) entry(n uint64) (ledger.Entry, error) {
	key := ledger.NumberKey(n)
	v := h.get(ledger.TableEntries, key)
	if v == nil {
		return ledger.Entry{}, fmt.Errorf("%w: entry %d is missing", boltfile.ErrDamaged, n)
	}
	return h.decode(key, v)
}

// decode reads an entry and fills in the accounts of its legs.
func (h history) decode(key string, value []byte) (ledger.Entry, error) {
	e, err := ledger.DecodeEntry(key, value)
	if err != nil {
		return e, err
	}
	for i := range e.Legs {
		leg := &e.Legs[i]
		if leg.Account, leg.Currency, err = ledger.DecodeLine(h.get(ledger.TableLines, ledger.LineKey(leg.Line))); err != nil {
			return e, fmt.Errorf("entry %d: %w", e.Number, err)
		}
	}
	return e, nil
}

// since is the number of the first entry at or after a time, found by halving:
// numbers have no gaps and times never fall.
func (h history) since(t time.Time) (uint64, error) {
	s, err := h.state()
	if err != nil {
		return 0, err
	}
	var failed error
	i := sort.Search(int(s.Entry), func(i int) bool {
		e, err := h.entry(uint64(i) + 1)
		if err != nil {
			failed = err
			return true
		}
		return !e.Time.Before(t)
	})
	return uint64(i) + 1, failed
}

// statement walks the index of a line and its latest entries, from the first entry on or
// back from the end.
func (h history) statement(line uint32, first, end uint64, limit int, back bool) (s Statement, err error) {
	visit := func(n uint64) (bool, error) {
		switch {
		case n < first:
			return !back, nil
		case n >= end:
			return back, nil
		case len(s.Entries) >= limit:
			s.More = true
			return false, nil
		}
		e, err := h.entry(n)
		s.Entries = append(s.Entries, e)
		return true, err
	}
	if !back {
		err = h.walk(line, first, visit)
		return s, err
	}
	err = h.walkBack(line, end, visit)
	slices.Reverse(s.Entries)
	return s, err
}

// walk visits the entries of a line from about first on, until visit is done.
func (h history) walk(line uint32, first uint64, visit func(n uint64) (bool, error)) error {
	done := false
	err := h.scan(ledger.TableIndex, ledger.IndexKey(line, first), func(k string, v []byte) (bool, error) {
		if !strings.HasPrefix(k, ledger.LineKey(line)) {
			return false, nil
		}
		ns, err := ledger.DecodeIndex(v)
		if err != nil {
			return false, err
		}
		more, err := each(ns, visit)
		done = !more
		return more, err
	})
	if err != nil || done {
		return err
	}
	v := h.get(ledger.TableBalances, ledger.LineKey(line))
	if v == nil {
		return nil
	}
	_, _, tail, err := ledger.DecodeBalance(v)
	if err != nil {
		return err
	}
	_, err = each(tail, visit)
	return err
}

// walkBack visits the entries of a line in reverse, from about end on, until visit is done.
func (h history) walkBack(line uint32, end uint64, visit func(n uint64) (bool, error)) error {
	backwards := func(ns []uint64, err error) (bool, error) {
		if err != nil {
			return false, err
		}
		slices.Reverse(ns)
		return each(ns, visit)
	}
	if v := h.get(ledger.TableBalances, ledger.LineKey(line)); v != nil {
		_, _, tail, err := ledger.DecodeBalance(v)
		if more, err := backwards(tail, err); err != nil || !more {
			return err
		}
	}
	b := h.tables.Bucket([]byte(ledger.TableIndex))
	if b == nil {
		return nil
	}
	c := b.Cursor()
	k, v := c.Seek([]byte(ledger.IndexKey(line, end)))
	if k == nil {
		k, v = c.Last()
	} else if !strings.HasPrefix(string(k), ledger.LineKey(line)) {
		k, v = c.Prev()
	}
	for more := true; more && strings.HasPrefix(string(k), ledger.LineKey(line)); k, v = c.Prev() {
		var err error
		if more, err = backwards(ledger.DecodeIndex(v)); err != nil {
			return err
		}
	}
	return nil
}

func each(ns []uint64, visit func(n uint64) (bool, error)) (bool, error) {
	for _, n := range ns {
		if more, err := visit(n); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// receipt combines the entry that decided with those of refunds and ends.
func (h history) receipt(bank protocol.AgentID, id protocol.ContractID, key string, number []byte) (protocol.Receipt, error) {
	n, err := ledger.DecodeNumber(number)
	if err != nil {
		return protocol.Receipt{}, err
	}
	e, err := h.entry(n)
	if err != nil {
		return protocol.Receipt{}, err
	}
	r, err := e.Receipt(bank)
	if err != nil {
		return r, err
	}
	if r.Contract != id {
		return r, fmt.Errorf("%w: entry %d decided contract %s, not %s", boltfile.ErrDamaged, n, r.Contract, id)
	}
	err = h.ends(key, &r)
	return r, err
}

// ends adds the refunds and the ends of the units of a contract to its receipt, in their order.
func (h history) ends(key string, r *protocol.Receipt) error {
	err := h.scan(ledger.TableRefunds, key, func(k string, v []byte) (bool, error) {
		if !strings.HasPrefix(k, key) {
			return false, nil
		}
		n, err := ledger.DecodeNumber(v)
		if err != nil {
			return false, err
		}
		e, err := h.entry(n)
		e.AddTo(r)
		return true, err
	})
	sort.Slice(r.Refunds, func(i, j int) bool { return r.Refunds[i].Entry < r.Refunds[j].Entry })
	sort.Slice(r.Ends, func(i, j int) bool { return r.Ends[i].Entry < r.Ends[j].Entry })
	return err
}
