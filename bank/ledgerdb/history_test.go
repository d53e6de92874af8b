package ledgerdb_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// diary is a ledger on disk, and its entries as a plain list.
type diary struct {
	l       *ledger.Ledger
	db      *ledgerdb.DB
	now     time.Time
	agents  []protocol.AgentID
	entries []ledger.Entry
	decided map[protocol.ContractID]protocol.Receipt
	pending []protocol.Record // saved in one append before anybody reads
}

func newDiary(t testing.TB) *diary {
	t.Helper()
	db, err := ledgerdb.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	d := &diary{db: db, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), decided: map[protocol.ContractID]protocol.Receipt{}}
	for i := range 4 {
		d.agents = append(d.agents, benchAgent(i))
	}
	d.load(t)
	for _, id := range d.agents {
		e, records, err := d.l.Open(d.now, id, "n")
		d.note(t, e, records, err)
	}
	return d
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func (d *diary) load(t fataler) {
	t.Helper()
	d.flush(t)
	var err error
	d.l, err = ledger.Load(ledger.Config{Bank: benchAgent(-1), Currencies: []string{"cr"}}, d.now, d.db)
	if err != nil {
		t.Fatal(err)
	}
}

func (d *diary) note(t fataler, e ledger.Entry, records []protocol.Record, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	d.pending = append(d.pending, records...)
	d.entries = append(d.entries, e)
}

func (d *diary) flush(t fataler) {
	t.Helper()
	if err := d.db.Append(d.pending); err != nil {
		t.Fatal(err)
	}
	d.pending = nil
}

// trade settles one bundle, and sometimes refunds it.
func (d *diary) trade(t fataler, user, seller protocol.AgentID, cost, back protocol.Credits) {
	n := len(d.entries)
	b := protocol.Bundle{
		Version: protocol.BundleVersion, User: user, Bank: d.l.Bank(), Currency: "cr", Mode: protocol.ModeOnReservation,
		Units: []protocol.BundleUnit{{Seller: seller, Cost: cost}}, Total: cost, SettleBy: d.now.Add(time.Minute),
	}
	id := protocol.ContractID(fmt.Sprintf("%064x", n))
	r, records, err := d.l.Copy(d.now, id, b, seller)
	if err != nil {
		t.Fatal(err)
	}
	d.pending = append(d.pending, records...)
	e := ledger.Entry{Number: r.Entry, Time: r.Time, Kind: ledger.KindVoid}
	if r.Outcome == protocol.OutcomeSettled {
		e.Kind = ledger.KindSettle
		e.Legs = []ledger.Leg{{Account: user, Amount: -cost}, {Account: seller, Amount: cost}}
	}
	d.entries = append(d.entries, e)
	if e.Kind == ledger.KindSettle && back <= cost {
		if r, records, err = d.l.Refund(d.now, id, b, 0, back, seller); err == nil {
			d.pending = append(d.pending, records...)
			legs := []ledger.Leg{{Account: seller, Amount: -back}, {Account: user, Amount: back}}
			d.entries = append(d.entries, ledger.Entry{Number: r.Refunds[0].Entry, Time: d.now, Kind: ledger.KindRefund, Legs: legs})
		}
	}
	d.decided[id] = r
}

// brief is what a diary knows of an entry.
func brief(e ledger.Entry) string {
	s := fmt.Sprintf("%d %s %s", e.Number, e.Kind, e.Time.Format(time.RFC3339))
	for _, leg := range e.Legs {
		s += fmt.Sprintf(" %s%+d", leg.Account.Name(), leg.Amount)
	}
	return s
}

// of are the entries of an account between two times, the slow way.
func (d *diary) of(id protocol.AgentID, from, to time.Time) []string {
	var lines []string
	for _, e := range d.entries {
		for _, leg := range e.Legs {
			if leg.Account == id && !e.Time.Before(from) && (to.IsZero() || e.Time.Before(to)) {
				lines = append(lines, brief(e))
				break
			}
		}
	}
	return lines
}

// statement reads all pages.
func (d *diary) statement(t fataler, q ledgerdb.Query) []string {
	t.Helper()
	var lines []string
	for {
		s, err := d.db.Statement(q)
		if err != nil || len(s.Entries) > q.Limit || s.More && len(s.Entries) < q.Limit {
			t.Fatalf("%d entries, more %v, %v", len(s.Entries), s.More, err)
		}
		for _, e := range s.Entries {
			lines = append(lines, brief(e))
			q.After = e.Number
		}
		if !s.More {
			return lines
		}
	}
}

// statementBack reads all pages from the last one on, of the entries below q.Before.
func (d *diary) statementBack(t fataler, q ledgerdb.Query) []string {
	t.Helper()
	var lines []string
	for {
		s, err := d.db.Statement(q)
		if err != nil || len(s.Entries) > q.Limit || s.More && len(s.Entries) < q.Limit {
			t.Fatalf("%d entries, more %v, %v", len(s.Entries), s.More, err)
		}
		var page []string
		for _, e := range s.Entries {
			page = append(page, brief(e))
		}
		lines = append(page, lines...)
		if !s.More {
			return lines
		}
		q.Before = s.Entries[0].Number
	}
}

// TestHistory holds look-ups against a plain list of what happened.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDiary(t)
		first := d.now
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			d.step(rt)
		}
		d.flush(rt)
		for range 20 {
			q := ledgerdb.Query{
				Account: rapid.SampledFrom(append(d.agents, benchAgent(9))).Draw(rt, "of"), Currency: "cr",
				From:  first.Add(time.Duration(rapid.IntRange(-2, 200).Draw(rt, "from")) * time.Second),
				Limit: rapid.IntRange(1, 30).Draw(rt, "limit"),
			}
			if rapid.Bool().Draw(rt, "to") {
				q.To = q.From.Add(time.Duration(rapid.IntRange(-1, 100).Draw(rt, "for")) * time.Second)
			}
			if got, want := d.statement(rt, q), d.of(q.Account, q.From, q.To); !reflect.DeepEqual(got, want) {
				rt.Fatalf("statement %+v:\n got %q\nwant %q", q, got, want)
			}
			q.Before = uint64(rapid.IntRange(1, len(d.entries)+2).Draw(rt, "before"))
			want := slices.DeleteFunc(d.of(q.Account, q.From, q.To), func(line string) bool {
				n := uint64(0)
				_, err := fmt.Sscan(line, &n)
				return err != nil || n >= q.Before
			})
			if got := d.statementBack(rt, q); !slices.Equal(got, want) {
				rt.Fatalf("statement %+v:\n got %q\nwant %q", q, got, want)
			}
		}
		d.compareEntries(rt)
	})
}

func (d *diary) step(rt *rapid.T) {
	d.now = d.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(rt, "pause")) * time.Second)
	a, b := rapid.SampledFrom(d.agents).Draw(rt, "a"), rapid.SampledFrom(d.agents).Draw(rt, "b")
	amount := protocol.Credits(rapid.IntRange(1, 20).Draw(rt, "amount"))
	switch rapid.IntRange(0, 8).Draw(rt, "what") {
	case 0:
		d.load(rt)
	case 1, 2:
		e, records, err := d.l.Credit(d.now, a, "cr", 10*amount, "pay")
		d.note(rt, e, records, err)
	default:
		d.trade(rt, a, b, amount, protocol.Credits(rapid.IntRange(1, 40).Draw(rt, "back")))
	}
}

func (d *diary) compareEntries(rt *rapid.T) {
	from := rapid.IntRange(0, len(d.entries)+2).Draw(rt, "from")
	limit := rapid.IntRange(1, 40).Draw(rt, "limit")
	es, err := d.db.Entries(uint64(from), limit)
	if err != nil {
		rt.Fatal(err)
	}
	start := max(from, 1) - 1
	want := d.entries[min(start, len(d.entries)):min(start+limit, len(d.entries))]
	if len(es) != len(want) {
		rt.Fatalf("%d entries from %d, want %d", len(es), from, len(want))
	}
	for i, e := range es {
		if brief(e) != brief(want[i]) {
			rt.Fatalf("entry %q, want %q", brief(e), brief(want[i]))
		}
	}
	for id, want := range d.decided {
		got, err := d.db.Outcome(id)
		if err != nil || !got.Found || got.AsOf != d.l.LastEntry() || !reflect.DeepEqual(got.Receipt, want) {
			rt.Fatalf("outcome %+v (%v), want %+v", got, err, want)
		}
	}
	none, err := d.db.Outcome(protocol.ContractID(fmt.Sprintf("%064d", 0)))
	if err != nil || none.Found {
		rt.Fatalf("a contract that never was: %+v, %v", none, err)
	}
	if r, err := ledger.Audit(d.db); err != nil || len(r.Bad) > 0 {
		rt.Fatalf("audit: %+v, %v", r, err)
	}
}

func TestHistoryOfNothing(t *testing.T) {
	db, err := ledgerdb.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	es, err1 := db.Entries(1, 10)
	s, err2 := db.Statement(ledgerdb.Query{Account: benchAgent(0), Currency: "cr", Limit: 10})
	found, err3 := db.Outcome(protocol.ContractID(fmt.Sprintf("%064x", 1)))
	if len(es) != 0 || len(s.Entries) != 0 || s.More || found.Found || err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(es, s, found, err1, err2, err3)
	}
	if _, err := db.Outcome("no contract"); err == nil {
		t.Fatal("an outcome of nonsense")
	}
}

func TestInMemory(t *testing.T) {
	if _, err := ledgerdb.InMemory(filepath.Join(t.TempDir(), "no", "file")); err == nil {
		t.Fatal("a directory that is not there has a file system")
	}
	if mem, err := ledgerdb.InMemory("/dev/shm/x"); err == nil && !mem {
		t.Fatal("/dev/shm is not in memory")
	}
	if mem, err := ledgerdb.InMemory("/proc/x"); err != nil || mem {
		t.Fatalf("/proc: %v, %v", mem, err)
	}
}
