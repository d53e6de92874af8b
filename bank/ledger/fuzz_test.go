package ledger_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/bank/sold"
)

// FuzzStored puts one row of anything into the tables of a bank that uses
// everything, as a damaged disk might. Whatever it is, loading and auditing end
// with an answer, and what was loaded can be asked.
func FuzzStored(f *testing.F) {
	good := everything(f)
	for _, table := range slices.Sorted(maps.Keys(good)) {
		for _, key := range slices.Sorted(maps.Keys(good[table])) {
			f.Add(table, key, good[table][key])
		}
	}
	f.Fuzz(func(t *testing.T, table, key string, value []byte) {
		m := good.clone()
		if m[table] == nil {
			m[table] = map[string][]byte{}
		}
		m[table][key] = value
		if _, err := ledger.AuditSigned(m, checkStamp); err != nil {
			t.Fatal(err) // only a store that cannot be read is an error
		}
		_, _ = ledger.SoldIn(m, agent("bob"), start())
		_, _, _ = sold.DecodeKey(key)
		_, _ = sold.DecodeOld(key, value)
		l, err := ledger.Load(config(), start(), m)
		if err != nil {
			return
		}
		l.Accounts()
		l.Groups.All()
		l.Holds()
		l.NextDeadline()
		for _, name := range []string{"settled", "voided", "half"} {
			_, _ = l.Outcome(contractID(name))
		}
		_, _ = l.AccountAt(start().Add(1000*time.Hour), agent("ann"))
	})
}

// everything are tables with rows of each kind.
func everything(f *testing.F) memory {
	f.Helper()
	b := signedBank(f)
	half := newContract("half", agent("ann"), b.now.Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 1}, ledger.Payment{To: agent("zoe"), Amount: 2})
	if _, err := b.copy(half, agent("bob")); err != nil {
		f.Fatal(err)
	}
	if _, err := saved[ledger.Hold](b)(b.Hold(b.now, agent("ann"), "cr", 1, b.now.Add(time.Hour), "")); err != nil {
		f.Fatal(err)
	}
	return b.store
}
