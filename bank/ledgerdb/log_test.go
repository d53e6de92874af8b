package ledgerdb_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"ramp/bank/audit"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// signer is a bank that can sign, and whoever trusts it.
type signer struct {
	cred  *identity.Credential
	trust *identity.Trust
}

func (s signer) sign(h contract.Head) ([]byte, error) { return contract.SignHead(s.cred, h) }

func (s signer) open(der []byte) (contract.Head, string, error) {
	h, err := contract.OpenHead(der, s.trust)
	return h.Head, h.ID, err
}

func newSigner(t testing.TB) signer {
	t.Helper()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const life = 50 * 365 * 24 * time.Hour
	ca, err1 := identity.NewCA("ca", begin, life, bytes.NewReader(bytes.Repeat([]byte{7}, 64)))
	key, err2 := identity.NewKey(bytes.NewReader(bytes.Repeat([]byte{8}, 64)))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cert, err1 := ca.Issue("bank", key.Public(), begin, life)
	pem, err2 := identity.KeyPEM(key)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cred, err1 := identity.Parse(cert, pem)
	trust, err2 := identity.NewTrust(ca.CertPEM(), nil)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return signer{cred, trust}
}

// signedBank is a diary of a bank that signs its log.
func signedBank(t testing.TB, s signer, path string, trades int) *diary {
	t.Helper()
	db, err := ledgerdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SignHeads(s.sign)
	d := &diary{db: db, now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), decided: map[protocol.ContractID]protocol.Receipt{}}
	if d.l, err = ledger.Load(ledger.Config{Bank: s.cred.ID, Currencies: []string{"cr"}}, d.now, db); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		d.agents = append(d.agents, benchAgent(i))
		e, records, err := d.l.Open(d.now, d.agents[i], "n")
		d.note(t, e, records, err)
		e, records, err = d.l.Credit(d.now, d.agents[i], "cr", 1000, "first")
		d.note(t, e, records, err)
	}
	for i := range trades {
		d.now = d.now.Add(time.Second)
		d.trade(t, d.agents[i%4], d.agents[(i+1)%4], protocol.Credits(1+i%9), protocol.Credits(1+i%20))
		if i%7 == 0 {
			d.flush(t)
		}
	}
	_, records, err := d.l.Hold(d.now, d.agents[0], "cr", 5, d.now.Add(time.Hour), "held")
	if err != nil {
		t.Fatal(err)
	}
	d.pending = append(d.pending, records...)
	d.flush(t)
	if err := db.SealHead(time.Now()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryDecisionIsProvedToWhoTrustsTheBank(t *testing.T) {
	s := newSigner(t)
	d := signedBank(t, s, filepath.Join(t.TempDir(), "ledger.db"), 80)
	memory := audit.NewMemory()
	var from uint64
	for id, want := range d.decided {
		doc, err := d.db.ProveContract(id, from, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		h, err := contract.OpenHead(doc.Head, s.trust)
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.VerifyEntries(h.Head); err != nil {
			t.Fatal(err)
		}
		if err := doc.CheckReceipt(want); err != nil {
			t.Fatal(err)
		}
		want.Total++
		if doc.CheckReceipt(want) == nil && want.Outcome == protocol.OutcomeSettled {
			t.Fatal("a receipt of another amount is proved as well")
		}
		if err := memory.Newest(h, doc.From, doc.Growth); err != nil {
			t.Fatal(err)
		}
		from = h.Size
		d.now = d.now.Add(time.Second)
		d.trade(t, d.agents[0], d.agents[1], 1, 2)
		d.flush(t)
	}
}

// unzip writes a file of testdata that is compressed.
func unzip(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// goldenRoot is the root of the log of testdata/v1/ledger.db.gz, a file from
// before there was a log. It must never change: heads stand for it.
const goldenRoot = "2dcbf28d382641bc945d1295fd825a1ebd596a2f57029c5d7bebaf5cda1b0bcd"

func TestLedgerFromBeforeTheLogGetsOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	unzip(t, "testdata/v1/ledger.db.gz", path)
	for range 2 { // made, and then restored
		db, err := ledgerdb.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		_, log, err := db.AuditAll(true, nil, nil)
		if err != nil || len(log.Bad) > 0 {
			t.Fatal(err, log.Bad)
		}
		if log.Size == 0 || log.Root != goldenRoot {
			t.Errorf("%d entries with root %s, want root %s", log.Size, log.Root, goldenRoot)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALogsStateOfAnOlderFormatIsReadAndWrittenAnew(t *testing.T) {
	s := newSigner(t)
	for version := byte(1); version <= 2; version++ {
		path := filepath.Join(t.TempDir(), "ledger.db")
		if err := signedBank(t, s, path, 5).db.Close(); err != nil {
			t.Fatal(err)
		}
		inFile(t, path, func(tx *bbolt.Tx) error {
			log := tx.Bucket([]byte("log"))
			state := bytes.Clone(log.Get([]byte("state")))
			ledgerdb.SetLogTransaction(state, uint64(tx.ID()))
			return log.Put([]byte("state"), ledgerdb.OldLogState(state, version))
		})
		if found, _ := examine(path, s); found {
			t.Errorf("format %d: called damaged", version)
		}
		db, err := ledgerdb.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Append([]protocol.Record{{Table: "other", Key: "k", Value: []byte("v")}}), db.Close()); err != nil {
			t.Fatal(err)
		}
		inFile(t, path, func(tx *bbolt.Tx) error {
			if n := len(tx.Bucket([]byte("log")).Get([]byte("state"))); n != ledgerdb.LogStateSize {
				t.Errorf("format %d: %d octets after an append, want %d", version, n, ledgerdb.LogStateSize)
			}
			return nil
		})
	}
}

func TestEntryThatIsNotTheNextIsRefusedAndChangesNothing(t *testing.T) {
	s := newSigner(t)
	d := signedBank(t, s, filepath.Join(t.TempDir(), "ledger.db"), 10)
	es, err := d.db.Entries(1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	last := es[len(es)-1].Number
	for _, n := range []uint64{1, last, last + 2} {
		for _, v := range [][]byte{[]byte("x"), nil} {
			r := protocol.Record{Table: ledger.TableEntries, Key: ledger.NumberKey(n), Value: v}
			if d.db.Append([]protocol.Record{{Table: "other", Key: "k", Value: []byte("v")}, r}) == nil {
				t.Errorf("entry %d after %d: taken", n, last)
			}
		}
	}
	if _, log, err := d.db.AuditAll(true, s.open, nil); err != nil || len(log.Bad) > 0 || log.Size != last {
		t.Error(err, log)
	}
}

func TestHeadsChainAndAreSignedWhenDue(t *testing.T) {
	s := newSigner(t)
	d := signedBank(t, s, filepath.Join(t.TempDir(), "ledger.db"), 3)
	before, ok := d.db.Head()
	if !ok {
		t.Fatal("no head")
	}
	if err := d.db.SealHead(time.Now()); err != nil {
		t.Fatal(err)
	}
	if h, _ := d.db.Head(); h != before {
		t.Error("a head was signed though nothing was entered")
	}
	early := before.Time.Add(-time.Hour) // the clock was set back
	d.trade(t, d.agents[0], d.agents[1], 1, 2)
	d.flush(t)
	if err := d.db.SealHead(early); err != nil {
		t.Fatal(err)
	}
	after, _ := d.db.Head()
	if after.Size <= before.Size || after.Time.Before(before.Time) || after.Previous == before.Previous {
		t.Errorf("head %+v after %+v", after, before)
	}
	if _, err := d.db.Prove(nil, 0, before.Time.Add(31*time.Second)); err != nil {
		t.Fatal(err)
	}
	if h, _ := d.db.Head(); h.Size != after.Size || !h.Time.After(after.Time) {
		t.Error("who asks after half a minute gets an old head")
	}
	if _, log, err := d.db.AuditAll(true, s.open, nil); err != nil || len(log.Bad) > 0 || log.Heads < 3 {
		t.Error(err, log)
	}
}
