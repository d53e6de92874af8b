package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"ramp/agents/exit"
)

// Ratio is a figure of a benchmark, divided by its baseline of the same run so that more is better.
type Ratio struct {
	Name   string  `json:"name"`
	Ratio  float64 `json:"ratio"`
	Before float64 `json:"before,omitempty"` // the ratio of an earlier run
	Change float64 `json:"change,omitempty"` // since, as a part of it
}

// AllBench runs benchmarks as commands of this program.
type AllBench struct {
	Short    bool   // for about a minute in total
	Only     string // a list of benchmarks; empty: all
	Baseline string // a file of earlier ratios; empty: none
	Log      io.Writer
}

// benchmark is a command and the pairs of its figures that make ratios.
type benchmark struct {
	name, full, short string
	ratios            [][2]string
	keys              []string // figures that tell its rows apart
}

func benchmarks() []benchmark {
	return []benchmark{
		{"auction", "--rounds 3,5 --buyers 1,16", "--sellers 8 --rounds 3 --buyers 1 --time 3s",
			[][2]string{{"per_second", "bare_per_second"}, {"bare_median_ms", "median_ms"}, {"three_commits_median_ms", "settle_median_ms"}}, []string{"buyers", "rounds"}},
		{"bank", "--clients 1,64,256", "--clients 16 --accounts 1000 --entries 10000 --time 5s",
			[][2]string{{"per_second", "bbolt_batch_per_second"}, {"signed_per_second", "signature_only_per_second"}}, []string{"clients"}},
		{"english", "--jobs 1000", "--jobs 100", [][2]string{{"bare_cpu_ms", "cpu_ms"}}, nil},
		{"stage", "--size 256 --runs 5", "--size 32 --runs 5", [][2]string{{"put_mb_s", "bare_mb_s"}, {"get_mb_s", "bare_mb_s"}}, nil},
		{"sweep", "--tasks 40", "--tasks 10 --length 100ms", [][2]string{{"bare_overhead_median_ms", "overhead_median_ms"}}, nil},
		{"web", "--purchases 10000", "--purchases 1000 --gets 50 --auctions 10 --tabs 5 --sellers 5",
			[][2]string{{"static_median_ms", "list_median_ms"}, {"auction_alone_median_ms", "auction_watched_median_ms"}}, nil},
	}
}

// Run runs the benchmarks and compares their ratios with those of the baseline.
func (a *AllBench) Run(ctx context.Context) ([]Ratio, error) {
	before, err := a.before()
	if err != nil {
		return nil, err
	}
	list := benchmarks()
	if a.Only != "" {
		only := strings.Split(a.Only, ",")
		for _, name := range only {
			if !slices.ContainsFunc(list, func(b benchmark) bool { return b.name == name }) {
				return nil, exit.Fail(exit.Usage, "", "--only %q: want auction, bank, english, stage, sweep, web, with commas between", name)
			}
		}
		list = slices.DeleteFunc(list, func(b benchmark) bool { return !slices.Contains(only, b.name) })
	}
	var all []Ratio
	for _, b := range list {
		ratios, err := a.measure(ctx, b)
		if err != nil {
			return nil, err
		}
		for _, r := range ratios {
			if r.Before = before[r.Name]; r.Before > 0 {
				r.Change = r.Ratio/r.Before - 1
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func (a *AllBench) before() (map[string]float64, error) {
	if a.Baseline == "" {
		return nil, nil
	}
	var list []Ratio
	text, err := os.ReadFile(a.Baseline)
	if err == nil && json.Unmarshal(text, &list) != nil {
		err = errors.New("not a list of ratios, or cut short")
	}
	if err != nil {
		return nil, exit.Fail(exit.Usage, "make one with 'ramp bench all --json'", "--baseline %s: %w", a.Baseline, err)
	}
	ratios := map[string]float64{}
	for _, r := range list {
		ratios[r.Name] = r.Ratio
	}
	return ratios, nil
}

// measure runs one benchmark in a process of its own.
func (a *AllBench) measure(ctx context.Context, b benchmark) ([]Ratio, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	flags := b.full
	if a.Short {
		flags = b.short
	}
	fmt.Fprintf(a.Log, "ramp bench %s %s\n", b.name, flags)
	run := exec.CommandContext(ctx, program, append([]string{"bench", b.name, "--json"}, strings.Fields(flags)...)...) //nolint:gosec // this program
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }                                              // so that it ends its agents
	run.WaitDelay = time.Minute
	var out, log bytes.Buffer
	run.Stdout, run.Stderr = &out, &log
	if err := run.Run(); err != nil {
		return nil, exit.Fail(exit.Failed, "", "ramp bench %s: %w: %s", b.name, err, bytes.TrimSpace(log.Bytes()))
	}
	return b.read(out.Bytes())
}

// read makes the ratios of a benchmark's figures: one object, or a list of them.
func (b benchmark) read(text []byte) ([]Ratio, error) {
	if !bytes.HasPrefix(text, []byte("[")) {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	var rows []map[string]any
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("ramp bench %s: %w", b.name, err)
	}
	var list []Ratio
	for _, row := range rows {
		name := b.name
		for _, k := range b.keys {
			name += fmt.Sprintf(" %s=%v", k, row[k])
		}
		for _, r := range b.ratios {
			over, _ := row[r[0]].(float64)
			under, _ := row[r[1]].(float64)
			if over <= 0 || under <= 0 {
				return nil, fmt.Errorf("ramp bench %s: no %s and %s", b.name, r[0], r[1])
			}
			list = append(list, Ratio{Name: name + " " + r[0] + "/" + r[1], Ratio: over / under})
		}
	}
	return list, nil
}

// RatioRows is the table of ratios.
func RatioRows(list []Ratio) [][]string {
	rows := [][]string{{"ratio", "now", "before", "change"}}
	for _, r := range list {
		row := []string{r.Name, fmt.Sprintf("%.3f", r.Ratio), "", ""}
		if r.Before > 0 {
			row[2], row[3] = fmt.Sprintf("%.3f", r.Before), fmt.Sprintf("%+.0f %%", 100*r.Change)
		}
		rows = append(rows, row)
	}
	return rows
}
