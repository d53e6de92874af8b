package porttest

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestNoPortIsGivenTwice: not within a block, also when nobody listens yet, and
// not one on which somebody listens.
func TestNoPortIsGivenTwice(t *testing.T) {
	taken := free(t)
	l, err := net.Listen("tcp4", address(taken))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	given := map[int]bool{}
	for range size - 10 { // some others may be taken by other programs
		p := free(t)
		if p == taken || given[p] {
			t.Fatalf("port %d twice", p)
		}
		if p <= first || p >= 32768 {
			t.Fatalf("port %d", p)
		}
		given[p] = true
	}
	for range size { // once around
		if p := free(t); p == taken {
			t.Fatalf("port %d, on which somebody listens", p)
		}
	}
}

// TestProcessesHaveBlocksOfTheirOwn runs this test as another process, which
// says which ports it was given.
func TestProcessesHaveBlocksOfTheirOwn(t *testing.T) {
	if os.Getenv("PORTTEST_CHILD") != "" {
		for range 3 {
			t.Logf("port=%d", free(t))
		}
		return
	}
	mine := (free(t) - first) / size
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "TestProcessesHaveBlocksOfTheirOwn")
	cmd.Env = append(os.Environ(), "PORTTEST_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	parts := strings.Split(string(out), "port=")
	if len(parts) != 4 {
		t.Fatalf("%s", out)
	}
	for _, s := range parts[1:] {
		p, err := strconv.Atoi(strings.Fields(s)[0])
		if err != nil || (p-first)/size == mine {
			t.Errorf("port %d (%v), in block %d of the other process", p, err, mine)
		}
	}
}

func free(t *testing.T) int {
	t.Helper()
	p, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
