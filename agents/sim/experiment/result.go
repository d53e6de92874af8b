package experiment

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"

	"ramp/protocol"
)

// Result is what an experiment came to.
type Result struct {
	Experiment
	Seed     uint64
	Settings Settings
	Told     []string // what was substituted
	Complete bool
	NotRun   string  // what could not be run here, and why; empty: all was
	Tables   []Table // the runs first
	Figures  []Figure
	Shapes   []Shape
	Facts    []Fact
	Notes    []string
}

// Table is rows of text under a heading each; it becomes a CSV file.
type Table struct {
	Name    string
	About   string
	Columns []string
	Rows    [][]string
	Shown   bool // in the report too
}

// Figure is a picture, of one plot or of several in rows; it becomes an SVG and a
// PNG file.
type Figure struct {
	Name, Caption string
	plots         [][]*plot.Plot
}

// Shape is something that the source found and that must show.
type Shape struct {
	Name     string
	Held     bool
	Measured string
	Expected string
}

// Fact is a figure of ours beside the source's, asserted by nobody.
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
	c := csv.NewWriter(w)
	if err := c.Write(t.Columns); err != nil {
		return err
	}
	if err := c.WriteAll(t.Rows); err != nil {
		return err
	}
	c.Flush()
	return c.Error()
}

// num writes a number with so many decimals; one that is not known stays empty.
func num(x float64, decimals int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

func price(c protocol.Credits) float64 { return float64(c) / float64(protocol.Credit) }

func mean(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// deviation is the standard deviation of a sample.
func deviation(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	m, sum := mean(xs), 0.0
	for _, x := range xs {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(xs)-1))
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// fit is the straight line nearest to points, and how much of their variance it
// explains.
func fit(xs, ys []float64) (slope, offset, explained float64) {
	mx, my := mean(xs), mean(ys)
	var sxx, sxy, syy float64
	for i := range xs {
		sxx += (xs[i] - mx) * (xs[i] - mx)
		sxy += (xs[i] - mx) * (ys[i] - my)
		syy += (ys[i] - my) * (ys[i] - my)
	}
	slope = sxy / sxx
	if syy == 0 {
		return slope, my - slope*mx, 1
	}
	return slope, my - slope*mx, sxy * sxy / (sxx * syy)
}
