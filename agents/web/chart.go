package web

import (
	"fmt"
	"math"
)

// chart is a picture of bars on each other over time; its table is beside it.
type chart struct {
	Label, Unit           string
	Width, Height         int
	Left, TextAt, MarksAt int
	Lines, Marks          []mark
	Bars                  []bar
	Series                []series
}

type mark struct {
	At   int
	Text string
}

type bar struct {
	Class, Title string
	X, Y, W, H   float64
}

// series is a kind of bar; its class gives the colour.
type series struct{ Class, Name string }

// column is what stands at one time.
type column struct {
	Mark   string // below it; may be empty
	Name   string // when
	Values []float64
}

const (
	chartWidth, chartHeight = 720, 220
	chartLeft, chartFoot    = 60, 32
	chartMark               = 80 // room for a mark
)

// stacked draws columns. Their values have the order of the series.
func stacked(label, unit string, kinds []series, columns []column) *chart {
	c := &chart{Label: label, Unit: unit, Width: chartWidth, Height: chartHeight, Left: chartLeft, TextAt: chartLeft - 6, MarksAt: chartHeight - 4, Series: kinds}
	most := 0.0
	for _, col := range columns {
		sum := 0.0
		for _, v := range col.Values {
			sum += v
		}
		most = max(most, sum)
	}
	top := round(most)
	height := float64(chartHeight - chartFoot - 10)
	for i := range 5 {
		c.Lines = append(c.Lines, mark{int(10 + height*float64(4-i)/4), tickWords(top * float64(i) / 4)})
	}
	step := float64(chartWidth-chartLeft) / float64(max(1, len(columns)))
	for i, col := range columns {
		x, y := chartLeft+step*float64(i), 10+height
		if col.Mark != "" && x < chartWidth-chartMark {
			c.Marks = append(c.Marks, mark{int(x), col.Mark})
		}
		for k, v := range col.Values {
			h := height * v / top
			y -= h
			if v > 0 {
				c.Bars = append(c.Bars, bar{kinds[k].Class, fmt.Sprintf("%s: %s %.4g", col.Name, kinds[k].Name, v), x, y, max(1, step-1), h})
			}
		}
	}
	return c
}

// tickWords is a number beside an axis.
func tickWords(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4g M", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4g k", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// round is the end of an axis: the next of 1, 2, 4, 5 or 8 times a power of ten.
func round(most float64) float64 {
	if most <= 0 {
		return 1
	}
	ten := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 4, 5, 8, 10} {
		if n*ten >= most {
			return n * ten
		}
	}
	return 10 * ten
}
