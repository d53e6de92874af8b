package journal_test

import (
	"testing"

	"ramp/agents/journal"
	"ramp/agents/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(path string) (storetest.Store, error) { return journal.Open(path, 0) })
}
