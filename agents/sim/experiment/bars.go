package experiment

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// barRow is one series of bars. Its hatching distinguishes it without colour.
type barRow struct {
	values plotter.Values // NaN: no bar
	style  int
	width  vg.Length
	offset vg.Length
}

// bars draws named groups of bars side by side. A single series is not in the legend, as the
// axis names it.
func bars(p *plot.Plot, names []string, groups []series) {
	w := min(vg.Points(330/float64(len(names)*len(groups))), vg.Points(24))
	for i, g := range groups {
		b := barRow{plotter.Values(g.y), g.style, w, w * vg.Length(float64(i)-float64(len(groups)-1)/2)}
		p.Add(b)
		if len(groups) > 1 {
			p.Legend.Add(g.name, b)
		}
	}
	nominal(p, names)
	p.Y.Min = 0
	roof(p, .05)
}

// nominal writes names under the axis, one unit apart.
func nominal(p *plot.Plot, names []string) {
	p.NominalX(names...)
	p.X.Tick.Label.Rotation = math.Pi / 5
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	p.X.Min, p.X.Max = -.7, float64(len(names))-.3
}

// Plot draws the bars.
func (b barRow) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, v := range b.values {
		if math.IsNaN(v) {
			continue
		}
		left := x(float64(i)) + b.offset - b.width/2
		b.fill(c, vg.Rectangle{Min: vg.Point{X: left, Y: y(0)}, Max: vg.Point{X: left + b.width, Y: y(v)}})
	}
}

// Thumbnail draws the sample in the legend.
func (b barRow) Thumbnail(c *draw.Canvas) { b.fill(*c, c.Rectangle) }

// DataRange includes all bars.
func (b barRow) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, v := range b.values {
		if !math.IsNaN(v) {
			ymax = max(ymax, v)
		}
	}
	return 0, float64(len(b.values) - 1), 0, ymax
}

// fill paints a rectangle with its hatching and edge.
func (b barRow) fill(c draw.Canvas, r vg.Rectangle) {
	corners := []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
	c.FillPolygon(palette(b.style), corners)
	inside := draw.Canvas{Canvas: c.Canvas, Rectangle: r}
	ink := draw.LineStyle{Color: color.White, Width: vg.Points(.8)}
	c.StrokeLines(ink, inside.ClipLinesXY(hatching(b.style, r)...)...)
	c.StrokeLines(draw.LineStyle{Color: color.Black, Width: vg.Points(.4)}, append(corners, r.Min))
}

// hatching is the lines of a style over a rectangle. The first and the last style have no lines.
func hatching(style int, r vg.Rectangle) [][]vg.Point {
	const gap = vg.Length(4)
	var lines [][]vg.Point
	w, h := r.Max.X-r.Min.X, r.Max.Y-r.Min.Y
	switch style {
	case 1: // rising
		for d := -h; d < w; d += gap {
			lines = append(lines, []vg.Point{{X: r.Min.X + d, Y: r.Min.Y}, {X: r.Min.X + d + h, Y: r.Max.Y}})
		}
	case 2: // falling
		for d := -h; d < w; d += gap {
			lines = append(lines, []vg.Point{{X: r.Min.X + d, Y: r.Max.Y}, {X: r.Min.X + d + h, Y: r.Min.Y}})
		}
	case 4: // level
		for d := gap / 2; d < h; d += gap {
			lines = append(lines, []vg.Point{{X: r.Min.X, Y: r.Min.Y + d}, {X: r.Max.X, Y: r.Min.Y + d}})
		}
	}
	return lines
}
