package ledgeretcd_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/bank/ledgeretcd"
	"ramp/protocol"
)

// fileLedger is one with entries, and with more rows than one entry of a journal takes.
func fileLedger(t *testing.T, cfg ledgeretcd.Config) *ledgerdb.DB {
	t.Helper()
	db, err := ledgerdb.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now := time.Now()
	l, err := ledger.Load(ledger.Config{Bank: cfg.Bank, Currencies: []string{"CR"}}, now, db)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		_, opened, err1 := l.Open(now, account(i), fmt.Sprint("a", i))
		_, paid, err2 := l.Credit(now, account(i), "CR", 7, "")
		if err := errors.Join(err1, err2, db.Append(append(opened, paid...))); err != nil {
			t.Fatal(err)
		}
	}
	var many []protocol.Record
	for i := range 140_000 {
		many = append(many, protocol.Record{Table: "many", Key: fmt.Sprintf("%06d", i), Value: []byte{1}})
	}
	many = append(many, protocol.Record{Table: "journal", Key: "applied", Value: []byte("of another journal")})
	if err := db.Append(many); err != nil {
		t.Fatal(err)
	}
	return db
}

// rowsOf are all rows but those of the mirror itself.
func rowsOf(t *testing.T, db *ledgerdb.DB) map[string]string {
	t.Helper()
	names, err := db.Tables()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, name := range names {
		if name == "journal" {
			continue
		}
		if err := db.Each(name, func(k string, v []byte) error { rows[name+" "+k] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// A ledger in a file becomes that of a cluster, whole, for whoever reads the journal from
// its beginning; and never over another.
func TestALedgerInAFileIsTakenIntoACluster(t *testing.T) {
	startCluster(t)
	cfg := testConfig(t, t.TempDir()+"/first.db")
	from := fileLedger(t, cfg)
	if err := ledgeretcd.Import(t.Context(), cfg, from); err != nil {
		t.Fatal(err)
	}
	if err := ledgeretcd.Import(t.Context(), cfg, from); !errors.Is(err, ledgeretcd.ErrNotEmpty) {
		t.Errorf("imported over another: %v", err)
	}
	cfg.Mirror = t.TempDir() + "/second.db"
	s, err := lead(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	want, got := rowsOf(t, from), rowsOf(t, s.DB())
	for key := range want {
		if got[key] != want[key] {
			t.Fatalf("row %s is %x, want %x", key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	_, old, err1 := from.AuditAll(true, nil, nil)
	r, log, err2 := s.DB().AuditAll(true, nil, nil)
	if err := errors.Join(err1, err2); err != nil || len(r.Bad)+len(log.Bad) > 0 || log.Root != old.Root || log.Size != 100 {
		t.Errorf("%v: %q %q, root %s of %d entries, want %s", err, r.Bad, log.Bad, log.Root, log.Size, old.Root)
	}
}

// Part of a ledger is nobody's.
func TestNobodyLeadsAfterAnInterruptedImport(t *testing.T) {
	startCluster(t)
	cfg := testConfig(t, t.TempDir()+"/first.db")
	s, err := lead(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append([]protocol.Record{{Table: "journal", Key: "unfinished", Value: []byte{1}}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, mirror := range []string{cfg.Mirror, t.TempDir() + "/second.db"} {
		cfg.Mirror = mirror
		if s, err := lead(t, cfg); !errors.Is(err, ledgeretcd.ErrUnfinished) {
			t.Errorf("it leads: %v, %v", s, err)
		}
	}
	if err := ledgeretcd.Import(t.Context(), cfg, fileLedger(t, cfg)); !errors.Is(err, ledgeretcd.ErrUnfinished) {
		t.Errorf("imported behind a part: %v", err)
	}
}
