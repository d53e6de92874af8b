package storetest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ramp/protocol"
)

// victimEnv marks the copy of the test that is to be killed.
const victimEnv = "RAMP_STORETEST_VICTIM"

// kills is how many processes one run kills; window is how many of the last appends
// the table "recent" holds.
const (
	kills  = 6
	window = 20
)

// testKill lets processes append and acknowledge, kills each at a random moment, and
// checks the store.
func testKill(t *testing.T, open Open) {
	path := filepath.Join(t.TempDir(), "store")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		acked := runVictim(t, path, 1+rng.IntN(150))
		s := reopen(t, open, path)
		last := survived(t, s)
		if last < acked || last > acked+1 {
			t.Fatalf("append %d was acknowledged and at most one more was under way, but the store has %d", acked, last)
		}
		_ = s.Close()
	}
}

// runVictim kills a process after it has acknowledged some appends, and returns the
// number of the last acknowledged one.
func runVictim(t *testing.T, path string, after int) int {
	t.Helper()
	root, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command(os.Args[0], "-test.run=^"+root+"$")
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked, lines := 0, bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == after {
			_ = cmd.Process.Kill()
		}
		if acked, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatalf("the victim printed %q", lines.Text())
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the victim ended by itself")
	}
	return acked
}

// appendUntilKilled runs in the victim: append i adds to two tables, and removes the
// record of append i−window from one of them.
func appendUntilKilled(t *testing.T, open Open, path string) {
	s, err := open(path)
	if err != nil {
		t.Fatalf("victim: open: %v", err)
	}
	defer s.Close()
	for i := survived(t, s) + 1; ; i++ {
		if err := s.Append(numbered(i)); err != nil {
			t.Fatalf("victim: append %d: %v", i, err)
		}
		if _, err := fmt.Println(i); err != nil {
			t.Fatalf("victim: %v", err)
		}
	}
}

func numbered(i int) []protocol.Record {
	records := []protocol.Record{rec("last", "i", strconv.Itoa(i))}
	for k := range 10 {
		records = append(records, rec("all", fmt.Sprintf("%08d.%d", i, k), strings.Repeat("x", i%300)))
	}
	records = append(records, rec("recent", fmt.Sprintf("%08d", i), "y"))
	if i > window {
		records = append(records, protocol.Record{Table: "recent", Key: fmt.Sprintf("%08d", i-window)})
	}
	return records
}

// survived is the number of the last append. It checks that the store has every
// append up to it wholly, and nothing else.
func survived(t *testing.T, s Store) int {
	t.Helper()
	last := 0
	for _, line := range dump(t, s, "last") {
		last, _ = strconv.Atoi(strings.TrimPrefix(line, "i="))
	}
	var all, recent []string
	for i := 1; i <= last; i++ {
		for k := range 10 {
			all = append(all, fmt.Sprintf("%08d.%d=%s", i, k, strings.Repeat("x", i%300)))
		}
		if i > last-window {
			recent = append(recent, fmt.Sprintf("%08d=y", i))
		}
	}
	want(t, s, "all", all...)
	want(t, s, "recent", recent...)
	return last
}
