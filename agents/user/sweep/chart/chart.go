// Package chart draws how a sweep went: which task ran on which resource when, the money spent against
// the budget, and the tasks done by the deadline.
//
// It draws what the agent reports, and decides nothing. Each state of a task has a colour and a
// hatching of its own, so that a print without colours is readable too.
package chart

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Sweep is what is drawn, as it stood at Now.
type Sweep struct {
	message.Sweep
	Tasks  []message.SweepTask
	Ledger []message.SweepEntry
	Now    time.Time
}

// Sizes of a picture.
const (
	width  = 20 * vg.Centimeter
	height = 24 * vg.Centimeter
	aside  = 1.35 // of the time axis beyond its last event, for the legends
	near   = 3    // limits within so many times what was reached are inside the axes
)

// SVG draws for print.
func (s Sweep) SVG(w io.Writer) error {
	c := vgsvg.New(width, height)
	s.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

// PNG draws for screens.
func (s Sweep) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(120))
	s.draw(draw.New(c))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

func (s Sweep) draw(c draw.Canvas) {
	end := s.end()
	a := axis{zero: s.Created, unit: time.Second, name: "seconds"}
	switch {
	case end > 3*time.Hour:
		a.unit, a.name = time.Hour, "hours"
	case end > 3*time.Minute:
		a.unit, a.name = time.Minute, "minutes"
	}
	a.end, a.deadline = a.of(end), a.at(s.Deadline)
	if a.deadline <= near*a.end {
		a.end = max(a.end, a.deadline)
	}
	rows := [][]*plot.Plot{{s.gantt(a)}, {s.money(a)}, {s.progress(a)}}
	t := draw.Tiles{Rows: len(rows), Cols: 1, PadY: 10, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 8}
	for i, row := range plot.Align(rows, t, c) {
		rows[i][0].Draw(row[0])
	}
}

// end is the last event, or now if tasks run.
func (s Sweep) end() time.Duration {
	last := s.Created.Add(time.Second)
	for _, t := range s.Tasks {
		for _, a := range t.Attempts {
			last = protocol.Later(last, a.Started)
			last = protocol.Later(last, s.ended(a))
		}
	}
	return last.Sub(s.Created)
}

// ended is the end of an attempt; one that runs has none yet.
func (s Sweep) ended(a message.SweepAttempt) time.Time {
	if a.Ended.IsZero() {
		return protocol.Later(a.Started, s.Now)
	}
	return a.Ended
}

// axis is the axis of time, in units since zero.
type axis struct {
	zero          time.Time
	unit          time.Duration
	name          string
	end, deadline float64
}

func (a axis) of(d time.Duration) float64 { return float64(d) / float64(a.unit) }
func (a axis) at(t time.Time) float64     { return a.of(t.Sub(a.zero)) }

// panel is an empty plot over time.
func (a axis) panel(title, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text, p.X.Label.Text = title, y, a.name
	p.Title.Padding, p.Legend.Top = vg.Points(4), true
	p.Legend.TextStyle.Font.Size, p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(9), vg.Points(2), vg.Points(22)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	return p
}

// fit sets the axis, which is the same in all panels. The deadline is a line if it is near.
func (a axis) fit(p *plot.Plot, deadline time.Time) {
	p.Y.Min = 0
	if a.deadline <= a.end {
		p.Legend.Add("deadline", line(p, dashed(3), plotter.XYs{{X: a.deadline, Y: 0}, {X: a.deadline, Y: p.Y.Max}}))
	} else {
		p.Legend.Add("deadline " + deadline.UTC().Format("01-02 15:04Z"))
	}
	p.X.Min, p.X.Max = 0, a.end*aside
}

type stroke struct {
	style  int
	dashes []vg.Length
}

func dashed(style int) stroke { return stroke{style, []vg.Length{vg.Points(5), vg.Points(3)}} }

func line(p *plot.Plot, s stroke, points plotter.XYs) plot.Thumbnailer {
	l := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: paint(s.style), Width: vg.Points(1.4), Dashes: s.dashes}}
	p.Add(l)
	return l
}

// step is a change of a sum.
type step struct {
	at time.Time
	by float64
}

// steps is the sum over time, as a line.
func (a axis) steps(list []step) (points plotter.XYs, sum float64) {
	slices.SortStableFunc(list, func(x, y step) int { return x.at.Compare(y.at) })
	points = plotter.XYs{{}}
	for _, s := range list {
		x := min(max(0, a.at(s.at)), a.end)
		points = append(points, plotter.XY{X: x, Y: sum}, plotter.XY{X: x, Y: sum + s.by})
		sum += s.by
	}
	return append(points, plotter.XY{X: a.end, Y: sum}), sum
}

// money is what was spent over time, against the budget.
func (s Sweep) money(a axis) *plot.Plot {
	currency := cmp.Or(protocol.Harmless(s.Currency), "credits")
	p := a.panel("spent", currency)
	credits := func(c protocol.Credits) float64 { return float64(c) / float64(protocol.Credit) }
	var list []step
	for _, e := range s.Ledger {
		list = append(list, step{e.Slot.Start, credits(e.Paid)}, step{e.Slot.End, -credits(e.Refunded)})
	}
	points, sum := a.steps(list)
	p.Legend.Add("spent", line(p, stroke{style: 0}, points))
	limit(p, a, "budget", credits(s.Budget), sum)
	a.fit(p, s.Deadline)
	return p
}

// progress is the number of tasks done over time.
func (s Sweep) progress(a axis) *plot.Plot {
	p := a.panel("tasks done", "tasks")
	var list []step
	for _, t := range s.Tasks {
		if n := len(t.Attempts); n > 0 && t.State == "done" {
			list = append(list, step{t.Attempts[n-1].Ended, 1})
		}
	}
	points, sum := a.steps(list)
	p.Legend.Add("done", line(p, stroke{style: 2}, points))
	limit(p, a, "all", float64(s.Sweep.Tasks.Total), sum)
	a.fit(p, s.Deadline)
	return p
}

// limit is a line at what may or should be reached, if that is near.
func limit(p *plot.Plot, a axis, name string, most, reached float64) {
	p.Y.Max = max(1e-6, reached*1.1)
	switch {
	case most <= 0:
	case reached > 0 && most > near*reached:
		p.Legend.Add(fmt.Sprintf("%s %g", name, most))
	default:
		p.Y.Max = max(most, reached) * 1.1
		p.Legend.Add(name, line(p, dashed(1), plotter.XYs{{X: 0, Y: most}, {X: a.end, Y: most}}))
	}
}
