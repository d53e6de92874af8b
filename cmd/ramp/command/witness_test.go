package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who begins again without the bank's name, with what it saw before, has the growth
// since then proved to it.
func TestAWitnessThatBeginsAgainGoesOnFromWhatItSaw(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const line = "bank witness --count 1 --heads DIR/heads.json --dir DIR/bank"
	p.good(line)
	for range 3 {
		p.good("bank credit ann 5 --dir DIR/bank")
		if out := p.good(line); !strings.Contains(out, "entries") {
			t.Errorf("it says %q", out)
		}
	}
}

// A witness that cannot remember what it saw does not cry: the bank did nothing wrong.
func TestAWitnessThatCannotKeepHeadsBlamesNobody(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.good("bank witness --count 1 --heads DIR/heads.json --dir DIR/bank")
	p.good("bank credit ann 5 --dir DIR/bank") // there is a newer head to be kept
	long := strings.Repeat("h", 240)           // a temporary file beside it would have too long a name
	if err := os.Rename(filepath.Join(p.dir, "heads.json"), filepath.Join(p.dir, long)); err != nil {
		t.Fatal(err)
	}
	line := "bank witness --count 1 --heads DIR/" + long + " --dir DIR/bank"
	p.refused(line, 1, "cannot save the heads that were seen", "--heads")
	if _, out, told := p.run(line); strings.Contains(out+told, "ALARM") {
		t.Errorf("it cries: %s%s", out, told)
	}
}

// A bank that goes back again and again fills no disk, and what was kept first stays.
func TestTheEvidenceOfOneKindIsBounded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ledger := filepath.Join(p.dir, "bank", "ledger.db")
	old, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	const line = "bank witness --count 1 --heads DIR/heads.json --dir DIR/bank"
	for range 3 {
		p.good("bank credit ann 5 --dir DIR/bank")
	}
	p.good(line)
	if err := os.WriteFile(ledger, old, 0o600); err != nil {
		t.Fatal(err)
	}
	p.refused(line, 1, "shrunk", "keep DIR/heads.json-shrunk-")
	kept, err := filepath.Glob(filepath.Join(p.dir, "heads.json-shrunk-*-shown.p7m"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	for i := range 63 {
		if err := os.WriteFile(strings.Replace(kept[0], "-shown", strings.Repeat("x", i+1)+"-shown", 1), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.refused(line, 1, "shrunk", "keep DIR/heads.json-shrunk-") // the same alarm
	p.good("bank credit ann 5 --dir DIR/bank")
	p.refused(line, 1, "shrunk", "64 pairs of heads that contradict each other are kept")
	if kept, err = filepath.Glob(filepath.Join(p.dir, "heads.json-shrunk-*-shown.p7m")); err != nil || len(kept) != 64 {
		t.Error(len(kept), err)
	}
}
