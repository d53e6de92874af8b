package clearing_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// writeLP writes p as an integer programme in the CPLEX format: minimise cost
// over sets of bids. Nothing of the solver is used.
func writeLP(w io.Writer, p clearing.Problem) {
	b := bufio.NewWriter(w)
	defer b.Flush()
	fmt.Fprint(b, "Minimize\n cost:")
	for i, bid := range p.Bids {
		fmt.Fprintf(b, " + %d x%d\n", bid.Offer.Cost, i)
	}
	fmt.Fprint(b, "\nSubject To\n")
	for u := range p.Units {
		writeRow(b, p, "= 1", func(x clearing.Bid) int { return covers([]clearing.Bid{x}, u) })
	}
	for _, g := range exclusive(p) {
		writeRow(b, p, "<= 1", func(x clearing.Bid) int {
			if x.Seller == g.Seller && x.Offer.Group == g.Offer.Group {
				return 1
			}
			return 0
		})
	}
	for _, seller := range sellers(p) {
		for _, s := range p.Capacity[seller] {
			for minute := range horizon {
				if t := at(minute); !t.Before(s.Start) && t.Before(s.End) {
					writeRow(b, p, "<= "+strconv.Itoa(s.Cores), func(x clearing.Bid) int { return coresAt(x, seller, t) })
				}
			}
		}
	}
	fmt.Fprint(b, "Binary\n")
	for i := range p.Bids {
		fmt.Fprintf(b, " x%d\n", i)
	}
	fmt.Fprint(b, "End\n")
}

func writeRow(w io.Writer, p clearing.Problem, rhs string, factor func(clearing.Bid) int) {
	row := ""
	for i, b := range p.Bids {
		if f := factor(b); f != 0 {
			row += fmt.Sprintf(" + %d x%d\n", f, i)
		}
	}
	if row != "" {
		fmt.Fprintf(w, " %s %s\n", row, rhs)
	}
}

// exclusive is one bid of each group.
func exclusive(p clearing.Problem) []clearing.Bid {
	seen := map[[2]string]bool{}
	return slices.DeleteFunc(slices.Clone(p.Bids), func(b clearing.Bid) bool {
		k := [2]string{string(b.Seller), b.Offer.Group}
		again := seen[k]
		seen[k] = true
		return b.Offer.Group == "" || again
	})
}

func sellers(p clearing.Problem) []protocol.AgentID {
	var ids []protocol.AgentID
	for id := range p.Capacity {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func coresAt(b clearing.Bid, seller protocol.AgentID, t time.Time) int {
	sum := 0
	for _, it := range b.Offer.Items {
		if b.Seller == seller && !t.Before(it.Slot.Start) && t.Before(it.Slot.End) {
			sum += it.Slot.Cores
		}
	}
	return sum
}

// glpsol returns the least cost, or false if there is no set.
func glpsol(t *testing.T, p clearing.Problem, flags ...string) (float64, bool) {
	t.Helper()
	path, err := exec.LookPath("glpsol")
	if err != nil {
		t.Skip("glpsol (Debian glpk-utils) is not installed")
	}
	dir := t.TempDir()
	lp, out := filepath.Join(dir, "p.lp"), filepath.Join(dir, "p.out")
	f, err := os.Create(lp)
	if err != nil {
		t.Fatal(err)
	}
	writeLP(f, p)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := exec.Command(path, append([]string{"--lp", lp, "-o", out}, flags...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("glpsol: %v\n%s", err, log)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return readObjective(t, string(text))
}

func readObjective(t *testing.T, text string) (float64, bool) {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "Objective:"); ok {
			fields := strings.Fields(rest)
			v, err := strconv.ParseFloat(fields[2], 64)
			if err != nil {
				t.Fatalf("glpsol wrote %q", line)
			}
			return v, !strings.Contains(text, "EMPTY") && !strings.Contains(text, "UNDEFINED") && !strings.Contains(text, "INFEASIBLE")
		}
	}
	t.Fatalf("glpsol wrote no objective:\n%s", text)
	return 0, false
}

// TestSolveAgreesWithGLPK compares least costs with those of a solver of integer
// programmes that knows nothing of ours.
func TestSolveAgreesWithGLPK(t *testing.T) {
	middle := shape{units: 10, sellers: 6, offers: 2, bundles: 6, costs: 1000, groups: 50, single: 20, tight: 30}
	for seed := range seeds(12) {
		compareWithGLPK(t, middle.random(rand.New(rand.NewPCG(seed, 7))))
	}
	for _, name := range []string{"groups", "bundles", "equal prices"} {
		compareWithGLPK(t, plain()[name].random(rand.New(rand.NewPCG(3, 7))))
	}
}

func compareWithGLPK(t *testing.T, p clearing.Problem) {
	t.Helper()
	want, ok := glpsol(t, p, "--cuts")
	got, err := clearing.Solve(p)
	if err != nil || !got.Exact {
		t.Fatalf("exact %t, error %v", got.Exact, err)
	}
	if ok != (got.Status == clearing.Covered) || ok && math.Abs(want-float64(got.Cost)) > 0.5 {
		t.Fatalf("%s, cost %d; glpsol says %t, %.0f", got.Status, got.Cost, ok, want)
	}
}
