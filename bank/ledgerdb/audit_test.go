package ledgerdb_test

import (
	"path/filepath"
	"strings"
	"testing"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/contract"
)

// auditedBank is a bank with an act that has a signature to verify.
func auditedBank(t *testing.T) (signer, *diary) {
	t.Helper()
	s := newSigner(t)
	d := signedBank(t, s, filepath.Join(t.TempDir(), "ledger.db"), 20)
	return s, d
}

// While nobody may write, log and tables are audited at the same time: the head waits
// here until the tables have come to an act, and the act until a head is looked at.
// Were one done after the other, neither could go on.
func TestLogAndTablesOfABankThatIsStillAreAuditedAtTheSameTime(t *testing.T) {
	s, d := auditedBank(t)
	heads, acts := newMeeting(), newMeeting()
	open := func(der []byte) (contract.Head, string, error) {
		heads.here()
		<-acts.done
		return s.open(der)
	}
	verify := func(_, _ []byte) error {
		acts.here()
		<-heads.done
		return nil
	}
	r, log, err := d.db.AuditAll(true, open, verify)
	if err != nil || len(r.Bad)+len(log.Bad) > 0 || r.Entries != log.Size || r.Signed != 0 || log.Heads == 0 { // this bank signs no acts
		t.Errorf("%v, %+v, %+v", err, r, log)
	}
}

// meeting is a place where somebody has been.
type meeting struct{ done chan struct{} }

func newMeeting() meeting { return meeting{make(chan struct{})} }

func (m meeting) here() {
	select {
	case <-m.done:
	default:
		close(m.done)
	}
}

func TestBothAuditsAgreeWithThoseOfABankThatGoesOn(t *testing.T) {
	s, d := auditedBank(t)
	agree := func(octets, _ []byte) error { return nil }
	r1, l1, err1 := d.db.AuditAll(true, s.open, agree)
	r2, l2, err2 := d.db.AuditAll(false, s.open, agree)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if r1.Entries != r2.Entries || r1.Signed != r2.Signed || r1.Accounts != r2.Accounts || r1.Sum["cr"] != r2.Sum["cr"] ||
		l1.Size != l2.Size || l1.Root != l2.Root || l1.Heads != l2.Heads || len(r1.Bad)+len(r2.Bad)+len(l1.Bad)+len(l2.Bad) > 0 {
		t.Errorf("still: %+v %+v\ngoing on: %+v %+v", r1, l1, r2, l2)
	}
}

// A row that was changed is a fault of the log, in which all rows are added up, and of
// the tables.
func TestAFaultOfTheLogIsAllThatIsToldOfABankThatIsStill(t *testing.T) {
	s, d := auditedBank(t)
	path := d.db.Path()
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}
	tamperRow(t, path, storedRow{path: []string{"tables", ledger.TableBalances}, key: []byte(ledger.LineKey(1))}, []byte{1})
	db, err := ledgerdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, log, err := db.AuditAll(true, s.open, nil)
	if err != nil || len(log.Bad) == 0 || len(r.Bad) > 0 || r.Entries != 0 {
		t.Errorf("still: %v, %+v, %+v", err, r, log)
	}
	r, log, err = db.AuditAll(false, s.open, nil)
	if err != nil || len(log.Bad) == 0 || len(r.Bad) == 0 || !strings.Contains(r.Bad[0], "line 1") {
		t.Errorf("going on: %v, %+v, %+v", err, r, log)
	}
}

// What the caller's code does wrong is the caller's, and leaves a ledger that goes on.
func TestAPanicOfWhoVerifiesComesOut(t *testing.T) {
	s, d := auditedBank(t)
	func() {
		defer func() {
			if got := recover(); got != "not mine" {
				t.Errorf("%v came out", got)
			}
		}()
		_, _, err := d.db.AuditAll(true, s.open, func(_, _ []byte) error { panic("not mine") })
		t.Errorf("no panic, %v", err)
	}()
	if err := d.db.Append([]protocol.Record{{Table: "other", Key: "k", Value: []byte("v")}}); err != nil {
		t.Error(err)
	}
}
