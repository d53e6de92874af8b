package ledgerdb_test

import (
	"testing"

	"ramp/agents/storetest"
	"ramp/bank/ledgerdb"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(path string) (storetest.Store, error) { return ledgerdb.Open(path) })
}
