package ledgerdb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ramp/agents/storetest"
	"ramp/bank/boltfile"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(path string) (storetest.Store, error) { return ledgerdb.Open(path) })
}

func TestEveryFaultOfTheDisk(t *testing.T) {
	storetest.Faults(t, func(path string) (storetest.Store, error) { return ledgerdb.Open(path) })
}

func TestALedgerIsOpenOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := ledgerdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var busy *boltfile.InUseError
	if _, err := ledgerdb.Open(path); !errors.As(err, &busy) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("opened twice: %v, want who has it", err)
	}
	if err := db.Append([]protocol.Record{{Table: "t", Key: "k", Value: []byte("v")}}); err != nil {
		t.Errorf("after another tried to open it: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = ledgerdb.Open(path); err != nil {
		t.Fatalf("closed, and not to be opened: %v", err)
	}
	_ = db.Close()
}
