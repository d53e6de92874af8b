package ledger_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The worked examples in the manual are what the ledger prints: each block of them
// stands, line for line, in a conversation that TestPolicies plays.
func TestTheManualShowsWhatTheLedgerPrints(t *testing.T) {
	manual, err := os.ReadFile("../../docs/BANKING.md")
	if err != nil {
		t.Fatal(err)
	}
	played := ""
	files, err := filepath.Glob("testdata/policy/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		played += strings.ReplaceAll(string(text), "\n----\n", "\n")
	}
	shown := 0
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(manual), -1) {
		if !regexp.MustCompile(`(?m)^(buy id|allowance of|rate from)=`).MatchString(block[1]) {
			continue // commands, or what a demonstration prints
		}
		for _, step := range strings.Split(strings.TrimSpace(block[1]), "\n\n") {
			if shown++; !strings.Contains(played, step+"\n") {
				t.Errorf("no conversation in testdata/policy has this step of the manual:\n%s", step)
			}
		}
	}
	if shown < 18 {
		t.Errorf("%d steps are found in the manual, want its four examples", shown)
	}
}
