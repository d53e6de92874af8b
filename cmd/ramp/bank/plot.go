package bank

import (
	"bytes"
	"io"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"ramp/agents/config"
	"ramp/agents/exit"
	"ramp/agents/words"
	bankbooks "ramp/bank/books"
	"ramp/protocol"
)

// Sizes of a figure.
const (
	panelWidth  = 8 * vg.Inch
	panelHeight = 3 * vg.Inch
	panelPad    = vg.Length(10)
	plotted     = 8    // currencies at most
	headroom    = 1.08 // of the vertical axis above its greatest value
)

// plotReport draws the turnover and the price of a core-hour of each currency over time,
// as FILE.svg and FILE.png.
func plotReport(file string, list []bankbooks.Currency, step time.Duration) error {
	list = slices.DeleteFunc(slices.Clone(list), func(c bankbooks.Currency) bool { return c.Turnover == 0 })
	if len(list) == 0 {
		return exit.Fail(exit.Nothing, "", "nothing to plot: nothing was paid in this time")
	}
	rows := [][]*plot.Plot{}
	for _, c := range list[:min(len(list), plotted)] {
		turnover, err := panel(c, "turnover", step, func(p bankbooks.Period) protocol.Credits { return p.Turnover })
		if err != nil {
			return err
		}
		price, err := panel(c, "price of a core-hour", step, func(p bankbooks.Period) protocol.Credits { return p.PerCoreHour })
		if err != nil {
			return err
		}
		rows = append(rows, []*plot.Plot{turnover}, []*plot.Plot{price})
	}
	height := panelHeight * vg.Length(len(rows))
	image := vgsvg.New(panelWidth, height)
	if err := drawn(file+".svg", rows, image, image); err != nil {
		return err
	}
	dots := vgimg.PngCanvas{Canvas: vgimg.New(panelWidth, height)}
	return drawn(file+".png", rows, dots, dots)
}

// panel is a step chart of the periods; periods without business are at zero.
func panel(c bankbooks.Currency, what string, step time.Duration, of func(bankbooks.Period) protocol.Credits) (*plot.Plot, error) {
	p := plot.New()
	name := protocol.Harmless(c.Currency) // XML has no escape for control characters
	p.Title.Text = name + ": " + what
	p.X.Label.Text, p.Y.Label.Text = words.Zone(), name
	p.X.Tick.Marker = periodTicks(step)
	p.Y.Min = 0
	var points plotter.XYs
	at := func(t time.Time, y float64) { points = append(points, plotter.XY{X: float64(t.Unix()), Y: y}) }
	for _, q := range c.Periods {
		y := float64(of(q)) / float64(protocol.Credit)
		at(q.Start, 0)
		at(q.Start, y)
		at(q.Start.Add(step), y)
		at(q.Start.Add(step), 0)
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	p.Add(plotter.NewGrid(), line)
	if p.Y.Max *= headroom; p.Y.Max == 0 {
		p.Y.Max = 1 // the axis starts at zero even without data
	}
	return p, nil
}

// periodTicks mark the beginnings of periods, as many as have room for their labels.
type periodTicks time.Duration

// maxTicks is how many labels fit.
const maxTicks = 7

// Ticks implements plot.Ticker; the axis begins with a period.
func (t periodTicks) Ticks(first, last float64) []plot.Tick {
	step, form := time.Duration(t).Seconds(), "2006-01-02\n15:04"
	if time.Duration(t)%time.Minute != 0 {
		form += ":05"
	}
	every := max(1, math.Ceil((last-first)/step/maxTicks))
	var list []plot.Tick
	for n := 0.0; first+n*every*step <= last; n++ {
		at := first + n*every*step
		list = append(list, plot.Tick{Value: at, Label: time.UnixMilli(int64(at * 1e3)).Format(form)})
	}
	return list
}

// drawn draws the panels below each other, and writes the file.
func drawn(path string, rows [][]*plot.Plot, size vg.CanvasSizer, file io.WriterTo) error {
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: panelPad, PadTop: panelPad, PadBottom: panelPad, PadLeft: panelPad, PadRight: panelPad}
	for i, canvases := range plot.Align(rows, tiles, draw.New(size)) {
		rows[i][0].Draw(canvases[0])
	}
	var b bytes.Buffer
	if _, err := file.WriteTo(&b); err != nil {
		return err
	}
	return config.ReplaceFile(path, b.Bytes(), 0o644)
}
