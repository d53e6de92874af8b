package ledgerdb_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// An audit reads eleven tables, one after the other. Bundles that settle between
// two of them must not look like faults: all tables are of one moment.
func TestAnAuditDuringSettlementsSeesOneMoment(t *testing.T) {
	b := openBank(t)
	var report ledger.Report
	err := b.db.View(func(tables protocol.Tables) (err error) {
		report, err = ledger.Audit(settlingBetween{tables, b})
		return err
	})
	if err != nil || len(report.Bad) > 0 {
		t.Errorf("in one view: %v, %v", report.Bad, err)
	}
	if b.settled == 0 || report.Entries != 4 {
		t.Errorf("%d bundles were settled meanwhile, the audit saw %d entries", b.settled, report.Entries)
	}
	report, err = ledger.Audit(settlingBetween{b.db, b})
	if err != nil || len(report.Bad) == 0 {
		t.Errorf("table by table: %v, %v; this test cannot fail", report.Bad, err)
	}
}

// settlingBetween settles a bundle after every table that is read.
type settlingBetween struct {
	protocol.Tables
	bank *testBank
}

func (s settlingBetween) Each(name string, f func(key string, value []byte) error) error {
	err := s.Tables.Each(name, f)
	s.bank.settle()
	return err
}

// testBank has two accounts and money in one.
type testBank struct {
	t       *testing.T
	db      *ledgerdb.DB
	l       *ledger.Ledger
	now     time.Time
	settled uint64
}

func openBank(t *testing.T) *testBank {
	db, err := ledgerdb.Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := &testBank{t: t, db: db, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	if b.l, err = ledger.Load(ledger.Config{Bank: benchAgent(-1), Currencies: []string{"cr"}}, b.now, db); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		_, open, err := b.l.Open(b.now, benchAgent(i), "a")
		b.append(open, err)
		_, credit, err := b.l.Credit(b.now, benchAgent(i), "cr", 1<<40, "first")
		b.append(credit, err)
	}
	return b
}

func (b *testBank) append(records []protocol.Record, err error) {
	b.t.Helper()
	if err == nil {
		err = b.db.Append(records)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *testBank) settle() {
	b.t.Helper()
	b.settled++
	b.now = b.now.Add(time.Second)
	bundle := protocol.Bundle{
		Version: protocol.BundleVersion, User: benchAgent(0), Bank: b.l.Bank(), Currency: "cr", Mode: protocol.ModeOnReservation,
		Units: []protocol.BundleUnit{{Seller: benchAgent(1), Cost: 5}}, Total: 5, SettleBy: b.now.Add(protocol.DefaultSettle),
	}
	h := sha256.Sum256(binary.BigEndian.AppendUint64(nil, b.settled))
	r, records, err := b.l.Copy(b.now, protocol.ContractID(hex.EncodeToString(h[:])), bundle, benchAgent(1))
	if r.Outcome != protocol.OutcomeSettled {
		b.t.Fatal(r, err)
	}
	b.append(records, err)
}
