package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// A bank that was an hour ahead when it made its last entry, and whose clock is right
// now, says so wherever its operator looks; one whose entries are of now does not.
func TestABankWhoseClockWasSetBackSaysSo(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"set back": time.Hour, "right": 0} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "ramp-test-") // short: sockets are in it
			must(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			m, err := newMarket(dir, nil)
			must(t, err)
			t.Cleanup(func() { m.endOf(t) })
			m.entryAt(t, time.Now().Add(ahead))
			must(t, m.serve("bank"))
			for _, command := range []string{"status", "doctor", "bank policy"} {
				args := append(strings.Fields(command), "--dir", m.path("bank"))
				out, _ := exec.Command("ramp", args...).CombinedOutput() // status and doctor end with 1 if something is bad
				if said := strings.Contains(string(out), "this machine's clock is behind"); said != (ahead > 0) {
					t.Errorf("%s: %v\n%s", command, said, out)
				}
			}
			must(t, m.daemons["bank"].stop())
			if said := strings.Contains(m.daemons["bank"].lastLines(), "clock is behind"); said != (ahead > 0) {
				t.Errorf("%v\n%s", said, m.daemons["bank"].lastLines())
			}
		})
	}
}

// entryAt opens the user's account at an instant, before the bank serves.
func (m *market) entryAt(t *testing.T, at time.Time) {
	t.Helper()
	db, err := ledgerdb.Open(m.path("bank/ledger.db"))
	must(t, err)
	var records []protocol.Record
	must(t, db.View(func(tables protocol.Tables) error {
		l, err := ledger.Load(ledger.Config{Bank: m.ids["bank"], Currencies: []string{"CPU"}}, at, tables)
		if err == nil {
			_, records, err = l.Open(at, m.ids["user"], "user")
		}
		return err
	}))
	must(t, db.Append(records))
	must(t, db.Close())
}
