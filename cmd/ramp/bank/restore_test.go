package bank

import (
	"crypto/rand"
	"path/filepath"
	"testing"
	"time"

	"ramp/agents/node"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// Entries that no head of the bank covers are named: nobody needs a key to add some to a file.
func TestEntriesThatTheBankHasNotSignedAreNamed(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	ca, err := identity.NewCA("authority", now, time.Hour, rand.Reader)
	check(err)
	cred, err := ca.Credential("bank", now, time.Hour, rand.Reader)
	check(err)
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	check(err)
	for appended := range uint64(3) {
		r := &restoring{copy: filepath.Join(t.TempDir(), "copy.db"), cred: cred, trust: trust, currencies: []string{"CPU"}}
		for n := range 1 + appended {
			db, err := ledgerdb.Open(r.copy)
			check(err)
			if n == 0 {
				db.SignHeads(func(h contract.Head) ([]byte, error) { return contract.SignHead(cred, h) })
			}
			l, err := ledger.Load(ledger.Config{Bank: cred.ID, Currencies: r.currencies, Sign: node.SignActs(cred)}, now, db)
			check(err)
			_, records, err := l.SetRecovery(now, n%2 == 0, "test")
			check(err)
			check(db.Append(records))
			if n == 0 {
				check(db.SealHead(now))
			}
			check(db.Close())
		}
		found, err := r.prepare()
		check(err)
		if found.Unsigned != appended {
			t.Errorf("%d entries without a head are said to be %d", appended, found.Unsigned)
		}
	}
}
