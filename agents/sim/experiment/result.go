package experiment

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"

	"ramp/protocol"
)

// Result is the result of an experiment.
type Result struct {
	Experiment
	Seed     uint64
	Settings Settings
	Told     []string // substitutions
	Complete bool
	NotRun   string  // the part that could not run here, and why; empty: everything ran
	Tables   []Table // the runs first
	Figures  []Figure
	Shapes   []Shape
	Facts    []Fact
	Notes    []string
}

// Table is rows of text with column headings; it becomes a CSV file.
type Table struct {
	Name    string
	File    string // without .csv; empty: that of the result, and the name
	About   string
	Columns []string
	Rows    [][]string
	Shown   bool // in the report too
}

// Figure is one plot or several in rows; it becomes an SVG and a PNG file.
type Figure struct {
	Name, Caption string
	plots         [][]*plot.Plot
}

// Shape is a finding of the source that a reproduction must confirm.
type Shape struct {
	Name     string
	Held     bool
	Measured string
	Expected string
}

// Fact compares a figure with the source's, without a requirement.
type Fact struct{ What, Ours, Source string }

func (r *Result) table(t Table) { r.Tables = append(r.Tables, t) }

func (r *Result) shape(name string, held bool, measured, expected string) {
	r.Shapes = append(r.Shapes, Shape{name, held, measured, expected})
}

func (r *Result) fact(what, ours, source string) { r.Facts = append(r.Facts, Fact{what, ours, source}) }

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// CSV writes a table.
func (t Table) CSV(w io.Writer) error {
	return csv.NewWriter(w).WriteAll(slices.Concat([][]string{t.Columns}, t.Rows))
}

// each applies a function to every element of a list.
func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}

// num formats a number with some decimals; NaN gives an empty text.
func num(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

func price(c protocol.Credits) float64 { return float64(c) / float64(protocol.Credit) }

func mean(xs []float64) float64 { return stat.Mean(xs, nil) }

// deviation is the standard deviation of a sample, 0 for fewer than two values.
func deviation(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	return stat.StdDev(xs, nil)
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// fit is a least-squares line through points, and the share of their variance that it explains.
func fit(xs, ys []float64) (slope, offset, explained float64) {
	offset, slope = stat.LinearRegression(xs, ys, nil, false)
	if explained = stat.RSquared(xs, ys, nil, offset, slope); math.IsNaN(explained) { // all ys are equal
		explained = 1
	}
	return slope, offset, explained
}
