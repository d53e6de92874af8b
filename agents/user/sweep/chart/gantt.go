package chart

import (
	"image/color"
	"maps"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ramp/protocol"
	"ramp/protocol/message"
)

// paint is distinguishable for the colour-blind (Okabe and Ito).
func paint(i int) color.Color {
	return []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}}[i]
}

// The states of an attempt, which choose its colour and its hatching.
const (
	running = iota
	failed  // its program ended with another code than 0
	done
	lost // by its site, or with its slot
)

func stateOf(a message.SweepAttempt) int {
	switch {
	case a.Ended.IsZero():
		return running
	case a.Exit == nil:
		return lost
	case *a.Exit != 0:
		return failed
	}
	return done
}

// bar is an attempt, in units of the axis and lanes from the bottom.
type bar struct {
	from, to float64
	lane     int
}

// bars are the attempts of one state.
type bars struct {
	state int
	list  []bar
}

// gantt has a lane for each attempt that runs at once on a resource.
func (s Sweep) gantt(a axis) *plot.Plot {
	p := a.panel(protocol.Harmless(s.ID)+": "+s.State+", "+s.Strategy, "")
	on := map[string][]message.SweepAttempt{}
	for _, t := range s.Tasks {
		for _, x := range t.Attempts {
			on[x.Resource] = append(on[x.Resource], x)
		}
	}
	by := []bars{{state: running}, {state: failed}, {state: done}, {state: lost}}
	var names []plot.Tick
	lanes := 0
	for _, site := range slices.Backward(slices.Sorted(maps.Keys(on))) {
		used := s.place(on[site], func(x message.SweepAttempt, lane int) {
			b := &by[stateOf(x)]
			b.list = append(b.list, bar{a.at(x.Started), a.at(s.ended(x)), lanes + lane})
		})
		names = append(names, plot.Tick{Value: float64(lanes) + float64(used)/2, Label: protocol.Harmless(site)}, plot.Tick{Value: float64(lanes + used)})
		lanes += used
	}
	for i, name := range []string{"running", "failed", "done", "lost by its site"} {
		if len(by[i].list) > 0 || i == done {
			p.Add(by[i])
			p.Legend.Add(name, by[i])
		}
	}
	p.Y.Max = max(1, float64(lanes))
	p.Y.Tick.Marker = plot.ConstantTicks(names)
	a.fit(p, s.Deadline)
	return p
}

// place puts attempts on the first lane that is free, in the order in which they began, and returns the
// number of lanes.
func (s Sweep) place(list []message.SweepAttempt, put func(message.SweepAttempt, int)) int {
	slices.SortStableFunc(list, func(x, y message.SweepAttempt) int { return x.Started.Compare(y.Started) })
	var free []time.Time
	for _, x := range list {
		i := slices.IndexFunc(free, func(at time.Time) bool { return !at.After(x.Started) })
		if i < 0 {
			i, free = len(free), append(free, time.Time{})
		}
		free[i] = s.ended(x)
		put(x, i)
	}
	return len(free)
}

func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	const gap = .1 // between lanes
	for _, r := range b.list {
		b.fill(c, vg.Rectangle{Min: vg.Point{X: x(r.from), Y: y(float64(r.lane) + gap)}, Max: vg.Point{X: x(r.to), Y: y(float64(r.lane+1) - gap)}})
	}
}

func (b bars) Thumbnail(c *draw.Canvas) { b.fill(*c, c.Rectangle) }

// fill paints a rectangle with its hatching, and its edge if there is room for one.
func (b bars) fill(c draw.Canvas, r vg.Rectangle) {
	corners := []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
	c.FillPolygon(paint(b.state), corners)
	inside := draw.Canvas{Canvas: c.Canvas, Rectangle: r}
	c.StrokeLines(draw.LineStyle{Color: color.White, Width: vg.Points(.8)}, inside.ClipLinesXY(b.hatching(r)...)...)
	if r.Size().X > vg.Points(3) {
		c.StrokeLines(draw.LineStyle{Color: color.Black, Width: vg.Points(.4)}, append(corners, r.Min))
	}
}

// hatching returns the lines of a state over a rectangle; finished tasks have no lines.
func (b bars) hatching(r vg.Rectangle) (lines [][]vg.Point) {
	const gap = vg.Length(4)
	w, h := r.Size().X, r.Size().Y
	switch b.state {
	case running: // level
		for d := gap / 2; d < h; d += gap {
			lines = append(lines, []vg.Point{{X: r.Min.X, Y: r.Min.Y + d}, {X: r.Max.X, Y: r.Min.Y + d}})
		}
	case failed: // rising
		for d := -h; d < w; d += gap {
			lines = append(lines, []vg.Point{{X: r.Min.X + d, Y: r.Min.Y}, {X: r.Min.X + d + h, Y: r.Max.Y}})
		}
	case lost: // falling
		for d := -h; d < w; d += gap {
			lines = append(lines, []vg.Point{{X: r.Min.X + d, Y: r.Max.Y}, {X: r.Min.X + d + h, Y: r.Min.Y}})
		}
	}
	return lines
}
