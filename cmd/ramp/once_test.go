package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ramp/protocol/message"
)

// What a user and a site order, killed at growing delays and given again, with a daemon
// and without: bought once, cancelled once, written once, drained and selling again.
func TestAUsersCommandThatIsKilledAndGivenAgainIsDoneOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		daemon bool
	}{{"with a daemon", true}, {"without one", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := startMarket(t, "atlas")
			if !c.daemon {
				m.daemons["user"].kill()
			}
			boughtOnce(t, m)
			soldOnce(t, m)
		})
	}
}

func boughtOnce(t *testing.T, m *market) {
	t.Helper()
	user := m.path("user")
	kills := 0
	for i, request := range [][]string{
		{m.path("job.xml")},
		{"--cores", "4", "--wall", "1h", "--within", "6h", "--max-price", "60"},
		{"--cores", "2", "--wall", "1h", "--within", "6h", "--max-price", "60", "--and", "--cores", "1"},
	} {
		// What was signed by a command that was killed may be void when the next one asks:
		// it is told so, and then asked for once more.
		for try := 0; len(settledOf(t, user)) <= i && try < maxTries; try++ {
			kills += killedLater(t, 2, "", append(append([]string{"user", "buy", "--dir", user}, request...), "--json")...)
		}
	}
	bought := boughtBy(t, user, 3)
	id := bought[0].ID
	kills += killedLater(t, 2, "nothing to cancel|is cancelled already", "user", "cancel", id, "--dir", user)
	var p message.Purchase
	ramp(t, &p, "user", "show", id, "--dir", user)
	if p.RefundTotal != p.Total {
		t.Errorf("%s of %s is refunded", p.RefundTotal, p.Total)
	}
	out := filepath.Join(t.TempDir(), "receipt")
	kills += killedLater(t, 2, "", "user", "receipt", bought[1].ID, "--out", out, "--dir", user)
	for _, name := range []string{"ca.pem", "receipt.p7m", "sale-1.p7m"} { // the proof may not be there yet
		if b, err := os.ReadFile(filepath.Join(out, name)); len(b) == 0 {
			t.Errorf("%s of the receipt: %v", name, err)
		}
	}
	sold := m.sold(t)
	delete(sold, id)
	if len(sold) != 2 {
		t.Errorf("%d reservations stand, want those of two purchases", len(sold))
	}
	// Whoever was answered and gives the same command again means one more. One that was
	// killed just after its answer may have left its note.
	before := notesOf(t, user)
	ramp(t, nil, "user", "buy", "--dir", user, "--cores", "3", "--wall", "1h", "--within", "6h", "--max-price", "60")
	ramp(t, nil, "user", "buy", "--dir", user, "--cores", "3", "--wall", "1h", "--within", "6h", "--max-price", "60")
	boughtBy(t, user, 5)
	if left := notesOf(t, user); !slices.Equal(left, before) {
		t.Errorf("orders that were answered are noted still: %v, before them %v", left, before)
	}
	if kills < 6 {
		t.Errorf("%d kills are too few to say anything", kills)
	}
}

// notesOf are the orders that a user has noted.
func notesOf(t *testing.T, user string) []string {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(user, "pending", "*"))
	must(t, err)
	return notes
}

// boughtBy are the settled purchases of a user, of which there must be n.
func boughtBy(t *testing.T, user string, n int) []message.Purchase {
	t.Helper()
	bought := settledOf(t, user)
	if len(bought) != n {
		t.Fatalf("%d purchases are settled, want %d: %+v", len(bought), n, bought)
	}
	return bought
}

func settledOf(t *testing.T, user string) (bought []message.Purchase) {
	t.Helper()
	var list []message.Purchase
	ramp(t, &list, "user", "list", "--dir", user)
	for _, p := range list {
		if p.Settled {
			bought = append(bought, p)
		}
	}
	return bought
}

// soldOnce drains a site and lets it sell again.
func soldOnce(t *testing.T, m *market) {
	t.Helper()
	site := m.path("atlas")
	for _, c := range []struct{ verb, sales string }{{"drain", "drained"}, {"resume", "open"}} {
		killedLater(t, 2, "", "resource", c.verb, "--dir", site)
		var status struct{ Sales string }
		ramp(t, &status, "resource", "status", "--dir", site)
		if !strings.HasPrefix(status.Sales, c.sales) {
			t.Errorf("after %s the sales are %s", c.verb, status.Sales)
		}
	}
}

// A bank that is restored and let out of recovery by commands that are killed has what
// the backup had, and one beginning and one end of recovery; its file can be compacted.
// An authority signs and revokes what it was asked to, once.
func TestARestoreThatIsKilledAndGivenAgainIsDoneOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	bank := at("bank")
	ramp(t, nil, "bank", "init", "--currency", "CPU", "--uses", "3", "--dir", bank)
	kills := killedAtAll(t, "", "ca", "request", "ann", "--out", at("ann"))
	kills += killedAtAll(t, "exists already", "ca", "sign", at("ann/agent.csr"), "--dir", at("bank/ca"))
	ramp(t, nil, "bank", "account", "open", "ann", "--cert", at("ann/agent.pem"), "--dir", bank)
	ramp(t, nil, "bank", "credit", "ann", "100", "--dir", bank)
	var open []struct{ ID string }
	ramp(t, &open, "bank", "invite", "list", "--dir", bank)
	kills += killedAtAll(t, "0 invitations have an ID", "bank", "invite", "withdraw", open[0].ID, "--dir", bank)
	ramp(t, nil, "bank", "backup", at("backup.db"), "--dir", bank)
	var before struct{ Entries int }
	ramp(t, &before, "bank", "audit", "--dir", bank)
	must(t, os.Remove(at("bank/ledger.db")))
	kills += killedAtAll(t, "exists already", "bank", "restore", at("backup.db"), "--dir", bank)
	kills += killedAtAll(t, "not in recovery", "bank", "recovery", "end", "--dir", bank)
	kills += killedAtAll(t, "", "bank", "compact", "--dir", bank)
	var after struct{ Entries int }
	ramp(t, &after, "bank", "audit", "--signatures", "--dir", bank)
	if after.Entries != before.Entries+2 {
		t.Errorf("%d entries after %d: want a beginning and an end of recovery", after.Entries, before.Entries)
	}
	for range 2 { // the second time nothing is added
		kills += killedAtAll(t, "", "ca", "revoke", at("ann/agent.pem"), "--dir", at("bank/ca"))
	}
	if kills < 20 {
		t.Errorf("%d kills are too few to say anything", kills)
	}
}

// Revocations that are written at once are all in the list.
func TestNoRevocationIsLostBesideOthers(t *testing.T) {
	t.Parallel()
	const most = 8
	ca := filepath.Join(t.TempDir(), "ca")
	ramp := func(args ...string) error {
		out, err := exec.Command("ramp", append(args, "--dir", ca)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ramp %v: %w: %s", args, err, out)
		}
		return nil
	}
	if err := ramp("ca", "init"); err != nil {
		t.Fatal(err)
	}
	for i := range most {
		name := fmt.Sprint("a", i)
		if err := ramp("ca", "issue", name, "--out", filepath.Join(ca, name)); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i := range most {
		all.Go(func() {
			if err := ramp("ca", "revoke", filepath.Join(ca, fmt.Sprint("a", i), "agent.pem")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(filepath.Join(ca, "revoked.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil || len(list.RevokedCertificateEntries) != most {
		t.Errorf("%v; the list has %d of %d", err, len(list.RevokedCertificateEntries), most)
	}
}
