package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"ramp/agents/queue/swf"
	"ramp/agents/resource/forecast"
	"ramp/agents/workload"
)

// forecasts measures how often the forecast's bounds on waits hold, on every log of the directory.
func forecasts(ctx context.Context, l *Lab, r *Result) error {
	logs, err := l.Logs.all()
	if err != nil {
		return err
	}
	level := forecast.Usual()
	runs, err := gather(ctx, l, "forecast", len(logs), func(i int) forecast.Replayed { return forecast.Replay(logs[i].log, level) })
	t := Table{Name: "runs", About: "Hit rates", Shown: true, Columns: []string{"log", "cores", "jobs", "bounds told", "held", "rate", "changes"}}
	for i, x := range runs {
		t.Rows = append(t.Rows, tallies(logs[i].name, x)...)
	}
	r.table(t)
	if err != nil {
		return err
	}
	for i, x := range runs {
		r.forecastShape(logs[i].name, x, len(l.Logs.real) > 0)
	}
	r.forecastFigure(logs, runs)
	r.note("Bounds on the %.2f-quantile of waits with confidence %.2f, predicted when a job is submitted from waits that have ended by then.", level.Quantile, level.Confidence)
	return nil
}

func tallies(name string, x forecast.Replayed) [][]string {
	if x.Jobs == 0 {
		return [][]string{{name, "all", "0", "0", "0", "", "0"}}
	}
	line := func(cores string, t forecast.Tally, jobs string) []string {
		text := ""
		if rate, ok := t.Rate(); ok {
			text = num(rate, 4)
		}
		return []string{name, cores, jobs, fmt.Sprint(t.Told), fmt.Sprint(t.Held), text, fmt.Sprint(t.Changes)}
	}
	rows := [][]string{line("all", x.All(), fmt.Sprint(x.Jobs))}
	for i, t := range x.Clusters {
		rows = append(rows, line(forecast.ClusterName(i), t, ""))
	}
	return rows
}

// Limits of the hit rate on real logs with waits (specs §1.6).
const leastRate, mostRate = .95, .985

func (r *Result) forecastShape(name string, x forecast.Replayed, real bool) {
	rate, ok := x.All().Rate()
	switch {
	case !ok:
		r.note("%s records no waits.", name)
	case real:
		r.shape("waits within the bound, "+name, rate >= leastRate && rate <= mostRate, num(rate, 4), fmt.Sprintf("%.3f..%.3f", leastRate, mostRate))
	}
}

// forecastFigure shows the share of waits within the bound, of all jobs and by kind, and the
// required range of the former.
func (r *Result) forecastFigure(logs []realLog, runs []forecast.Replayed) {
	kinds := []series{{name: "all jobs", style: 0, points: true}}
	for i := range len(forecast.Replayed{}.Clusters) {
		kinds = append(kinds, series{name: forecast.ClusterName(i) + " cores", style: i + 3, points: true})
	}
	var names []string
	for i, x := range runs {
		rate, ok := x.All().Rate()
		if !ok {
			continue
		}
		at := float64(len(names))
		names = append(names, short(logs[i].name))
		kinds[0] = kinds[0].with(at, 100*rate)
		for k, c := range x.Clusters {
			if rate, ok := c.Rate(); ok {
				kinds[k+1] = kinds[k+1].with(at+.1*float64(k+1), 100*rate)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	p := chart("Bounds on waits", "", "waits within the bound (%)")
	ends := []float64{-.5, float64(len(names)) - .3}
	for i, y := range []float64{leastRate, mostRate} {
		add(p, series{name: []string{"required range, all jobs", ""}[i], x: ends, y: []float64{100 * y, 100 * y}, style: 7, bare: true, dashed: true})
	}
	add(p, kinds...)
	nominal(p, names)
	p.Y.Min, p.Y.Max = min(p.Y.Min, 94), 100
	roof(p, .35)
	p.Y.Tick.Marker = below{even{about: 8}, 100}
	r.figure("forecast", "Share of waits within the bound that was predicted when the job was submitted, for all jobs and by cores.", p)
}

func (s series) with(x, y float64) series {
	s.x, s.y = append(s.x, x), append(s.y, y)
	return s
}

// below are ticks up to a greatest value.
type below struct {
	plot.Ticker
	most float64
}

// Ticks returns the ticks of an axis.
func (b below) Ticks(low, high float64) []plot.Tick { return b.Ticker.Ticks(low, min(high, b.most)) }

// short is a log's name without its version and ending.
func short(name string) string {
	name, _, _ = strings.Cut(name, ".swf")
	name = strings.TrimSuffix(name, "-cln")
	if i := strings.LastIndexByte(name, '-'); i > 0 && strings.Trim(name[i+1:], "0123456789.") == "" && len(name)-i < 5 {
		name = name[:i]
	}
	return name
}

// LogError tells that a log cannot be read.
type LogError struct{ error }

func (e LogError) Unwrap() error { return e.error }

// all are the real logs of the directory, including those of machines that are not among the
// twenty; without real logs, the synthetic ones.
func (l *Logs) all() ([]realLog, error) {
	list := slices.Clone(l.real)
	if l.dir == "" {
		for _, s := range Sites() {
			log, err := synthetic(s.Name)
			if err != nil {
				return nil, err
			}
			list = append(list, realLog{s.Name, log})
		}
		return list, nil
	}
	paths, err := l.others()
	for _, path := range paths {
		var log *workload.Log
		if log, _, err = swf.Load(path); err != nil {
			return nil, LogError{err}
		}
		list = append(list, realLog{filepath.Base(path), log})
	}
	return list, err
}

// others are the files of the directory that belong to none of the twenty.
func (l *Logs) others() ([]string, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("workload logs: %w", err)
	}
	var paths []string
	for _, e := range entries {
		known := slices.ContainsFunc(l.real, func(x realLog) bool { return x.name == e.Name() })
		if strings.Contains(strings.ToLower(e.Name()), ".swf") && !known {
			paths = append(paths, filepath.Join(l.dir, e.Name()))
		}
	}
	return paths, nil
}
