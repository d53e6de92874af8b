package bank

import (
	"path/filepath"
	"testing"

	"ramp/agents/config"
)

func TestOneCommandAtATimeMakesABank(t *testing.T) {
	t.Parallel()
	f := founding{dir: filepath.Join(t.TempDir(), "bank")}
	leave, err := f.alone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.alone(); err == nil || err.Error() != "another command is making a bank in "+f.dir {
		t.Errorf("a second one got %v, want that another command is making it", err)
	}
	leave()
	if leave, err = f.alone(); err != nil {
		t.Fatal(err)
	}
	leave()
	if config.IsThere(filepath.Join(f.dir, foundingName)) {
		t.Error("the lock is left behind")
	}
}
