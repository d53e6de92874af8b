package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ramp/agents/exit"
	"ramp/protocol"
	"ramp/protocol/clearing"
)

// ClearingFigures are the results for one instance; the names are fixed.
type ClearingFigures struct {
	File   string           `json:"file"`
	Goods  int              `json:"goods"`
	Bids   int              `json:"bids"`
	Proved bool             `json:"proved"` // no set costs less
	Cost   protocol.Credits `json:"cost"`
	Gap    float64          `json:"gap"` // between cost and what is proved, as part of cost
	Steps  int              `json:"steps"`
	Nodes  int              `json:"nodes"`
	CPU    float64          `json:"cpu_ms"`
	CBC    *CBCFigures      `json:"cbc,omitempty"` // where it is installed
}

// CBCFigures are those of cbc for the same instance.
type CBCFigures struct {
	Proved bool    `json:"proved"`
	Cost   float64 `json:"cost"` // in credits; 0: it found no set
	CPU    float64 `json:"cpu_ms"`
}

// ClearingBench solves CATS instances.
type ClearingBench struct {
	Dir     string
	Limit   int // steps; 0: the default
	Seconds int // that cbc may take for an instance; 0: without cbc
}

// Run measures every file of the directory, in order, and shows each result.
func (b *ClearingBench) Run(ctx context.Context, show func(ClearingFigures)) error {
	files, err := os.ReadDir(b.Dir)
	if err != nil {
		return exit.Fail(exit.Usage, "name a directory of CATS instances", "%w", err)
	}
	cbc, err := exec.LookPath("cbc")
	if b.Seconds == 0 || err != nil {
		cbc = ""
	}
	n := 0
	for _, f := range files {
		if !f.Type().IsRegular() || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		r, err := b.measure(ctx, f.Name(), cbc)
		if err != nil {
			return err
		}
		show(r)
		n++
	}
	if n == 0 {
		return exit.Fail(exit.Usage, "name a directory of CATS instances", "%s has no files", b.Dir)
	}
	return nil
}

func (b *ClearingBench) measure(ctx context.Context, name, cbc string) (r ClearingFigures, err error) {
	f, err := os.Open(filepath.Join(b.Dir, name))
	if err != nil {
		return r, exit.Fail(exit.Failed, "", "%w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	c, err := ParseCATS(f)
	if err != nil {
		return r, exit.Fail(exit.Failed, "", "%s: %w", f.Name(), err)
	}
	p := c.Reverse()
	p.Limit = b.Limit
	begun := cpu(syscall.RUSAGE_SELF)
	s, err := clearing.Solve(p)
	took := cpu(syscall.RUSAGE_SELF) - begun
	if err != nil || s.Status != clearing.Covered {
		return r, exit.Fail(exit.Failed, "", "%s: %s: %w", f.Name(), s.Status, err)
	}
	r = ClearingFigures{
		File: name, Goods: c.Goods, Bids: len(c.Bids), Proved: s.Exact, Cost: s.Cost,
		Steps: s.Steps, Nodes: s.Nodes, CPU: milliseconds(took),
	}
	if s.Cost > s.CostBound {
		r.Gap = float64(s.Cost-s.CostBound) / float64(s.Cost)
	}
	if cbc != "" {
		r.CBC, err = b.runCBC(ctx, cbc, c)
	}
	return r, err
}

// cpu is the processor time of this process, or of its children that have ended.
func cpu(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (b *ClearingBench) runCBC(ctx context.Context, cbc string, c *CATS) (*CBCFigures, error) {
	f, err := os.CreateTemp("", "ramp-*.lp")
	if err != nil {
		return nil, exit.Fail(exit.Failed, "", "%w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it may remain
	if err := writeAndClose(f, c.writeLP); err != nil {
		return nil, exit.Fail(exit.Failed, "", "%w", err)
	}
	run := exec.CommandContext(ctx, cbc, f.Name(), "-sec", strconv.Itoa(b.Seconds), "-ratioGap", "0", "-solve", "-quit")
	out, err := run.Output()
	if err != nil {
		return nil, exit.Fail(exit.Failed, "leave cbc out with --cbc-seconds 0", "%s: %w", cbc, err)
	}
	r := parseCBC(string(out))
	r.CPU = milliseconds(run.ProcessState.UserTime() + run.ProcessState.SystemTime())
	return &r, nil
}

func writeAndClose(f *os.File, write func(io.Writer) error) error {
	err := write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// parseCBC reads what cbc prints at its end.
func parseCBC(out string) CBCFigures {
	r := CBCFigures{Proved: strings.Contains(out, "Result - Optimal solution found")}
	if m := regexp.MustCompile(`(?m)^Objective value: +([-+.0-9e]+)$`).FindStringSubmatch(out); m != nil {
		if v, err := strconv.ParseFloat(m[1], 64); err == nil && v < math.MaxInt64 {
			r.Cost = v
		}
	}
	return r
}

// ClearingRow is a row of the table of results; the first is of nil.
func ClearingRow(f *ClearingFigures) []string {
	if f == nil {
		return []string{"file", "goods", "bids", "proved", "cost", "gap %", "steps", "CPU ms", "cbc proved", "cbc cost", "cbc CPU ms"}
	}
	row := []string{
		f.File, fmt.Sprint(f.Goods), fmt.Sprint(f.Bids), fmt.Sprint(f.Proved), f.Cost.String(), fmt.Sprintf("%.2f", 100*f.Gap),
		fmt.Sprint(f.Steps), fmt.Sprintf("%.1f", f.CPU), "", "", "",
	}
	if f.CBC != nil {
		copy(row[8:], []string{fmt.Sprint(f.CBC.Proved), fmt.Sprintf("%.6f", f.CBC.Cost), fmt.Sprintf("%.1f", f.CBC.CPU)})
	}
	return row
}
