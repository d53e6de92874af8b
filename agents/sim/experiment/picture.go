package experiment

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of every figure: two columns of a paper.
const (
	width  = 17 * vg.Centimeter
	height = 10 * vg.Centimeter
	dpi    = 150
)

// palette is distinguishable for the colour-blind (Okabe and Ito).
func palette(i int) color.Color {
	list := []color.RGBA{
		{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
		{86, 180, 233, 255}, {230, 159, 0, 255}, {0, 0, 0, 255}, {150, 150, 150, 255},
	}
	return list[i%len(list)]
}

// glyph distinguishes series without colour.
func glyph(i int) draw.GlyphDrawer {
	list := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
	return list[i%len(list)]
}

// chart creates an empty figure with axes.
func chart(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(12), vg.Points(6)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = vg.Points(11), vg.Points(10)
		a.Label.Padding, a.Tick.Marker = vg.Points(4), even{about: 8}
	}
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(2), vg.Points(22)
	p.Legend.Top = true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	return p
}

// series is a line of points, optionally with deviations.
type series struct {
	name   string // empty: not in the legend
	x, y   []float64
	dev    []float64
	style  int
	dashed bool
	bare   bool // a line without points
	points bool // points without a line
}

func (s series) Len() int                        { return len(s.x) }
func (s series) XY(i int) (float64, float64)     { return s.x[i], s.y[i] }
func (s series) YError(i int) (float64, float64) { return s.dev[i], s.dev[i] }

// sampled adds the mean and the deviation of a sample, if it has values.
func (s series) sampled(x float64, sample []float64) series {
	if len(sample) > 0 {
		s = s.with(x, mean(sample))
		s.dev = append(s.dev, deviation(sample))
	}
	return s
}

// add draws series. It panics if that fails, which is a mistake in this package.
func add(p *plot.Plot, list ...series) {
	for _, s := range list {
		if len(s.x) == 0 {
			continue
		}
		var thumbs []plot.Thumbnailer
		if !s.points {
			thumbs = append(thumbs, s.line(p))
		}
		if !s.bare {
			thumbs = append(thumbs, s.scatter(p))
		}
		if s.dev != nil {
			bars, err := plotter.NewYErrorBars(s)
			must(err)
			bars.Color = palette(s.style)
			p.Add(bars)
		}
		if s.name != "" {
			p.Legend.Add(s.name, thumbs...)
		}
	}
}

func (s series) line(p *plot.Plot) plot.Thumbnailer {
	line, err := plotter.NewLine(s)
	must(err)
	line.Color, line.Width = palette(s.style), vg.Points(1.4)
	if s.dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	p.Add(line)
	return line
}

func (s series) scatter(p *plot.Plot) plot.Thumbnailer {
	dots, err := plotter.NewScatter(s)
	must(err)
	dots.Color, dots.Shape, dots.Radius = palette(s.style), glyph(s.style), vg.Points(2.8)
	p.Add(dots)
	return dots
}

// even is a number of ticks at round values.
type even struct{ about float64 }

// Ticks returns the ticks of an axis.
func (e even) Ticks(low, high float64) []plot.Tick {
	raw := (high - low) / e.about
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, k := range []float64{2, 2.5, 2} { // 2, 5 and 10 times
		if step >= raw {
			break
		}
		step *= k
	}
	var list []plot.Tick
	for x := math.Ceil(low/step-1e-9) * step; x <= high+step*1e-9; x += step {
		list = append(list, plot.Tick{Value: x, Label: strconv.FormatFloat(math.Round(x*1e9)/1e9+0, 'f', -1, 64)})
	}
	return list
}

// whole has ticks at every whole number of a short axis, and at round ones of a long axis.
func whole(p *plot.Plot, most int) {
	if most > 12 {
		return
	}
	var ticks []plot.Tick
	for i := 1; i <= most; i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: strconv.Itoa(i)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
}

// roof extends the axis to leave room for the legend.
func roof(p *plot.Plot, share float64) { p.Y.Max += (p.Y.Max - p.Y.Min) * share }

// aside extends the axis to leave room for the legend beside the lines.
func aside(p *plot.Plot, share float64) { p.X.Max += (p.X.Max - p.X.Min) * share }

func logarithmic(a *plot.Axis) { a.Scale, a.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1} }

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("experiment: figure: %v", err))
	}
}

func (r *Result) figure(name, caption string, p *plot.Plot) {
	r.Figures = append(r.Figures, Figure{name, caption, [][]*plot.Plot{{p}}})
}

// tiles makes a figure of several plots in rows, all with the same axes.
func (r *Result) tiles(name, caption string, columns int, list []*plot.Plot) {
	var rows [][]*plot.Plot
	for i := 0; i < len(list); i += columns {
		row := make([]*plot.Plot, columns)
		copy(row, list[i:])
		rows = append(rows, row)
	}
	r.Figures = append(r.Figures, Figure{name, caption, rows})
}

// tile creates a small plot with few labels.
func tile(title string) *plot.Plot {
	p := chart(title, "", "")
	p.Title.TextStyle.Font.Size, p.Title.Padding = vg.Points(10), vg.Points(2)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Label.Font.Size, a.Label.TextStyle.Font.Size = vg.Points(8), vg.Points(9)
		a.Tick.Marker = even{about: 4}
	}
	return p
}

// PNG writes a figure for screens.
func (f Figure) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
	f.draw(draw.New(c))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// SVG writes a figure for print.
func (f Figure) SVG(w io.Writer) error {
	c := vgsvg.New(width, height)
	f.draw(draw.New(c))
	_, err := c.WriteTo(w)
	return err
}

// draw leaves a margin, so that nothing at the edge is cut off.
func (f Figure) draw(c draw.Canvas) {
	const margin, between = 8, 6
	c = draw.Crop(c, margin, -2*margin, margin, -margin)
	t := draw.Tiles{Rows: len(f.plots), Cols: len(f.plots[0]), PadX: between, PadY: between}
	for i, row := range plot.Align(f.plots, t, c) {
		for j, tile := range row {
			if f.plots[i][j] != nil {
				f.plots[i][j].Draw(tile)
			}
		}
	}
}

// broken splits a line where x jumps by more than gap. Only the first part is in the legend.
func (s series) broken(gap float64) []series {
	var list []series
	from := 0
	for i := 1; i <= len(s.x); i++ {
		if i < len(s.x) && s.x[i]-s.x[i-1] <= gap {
			continue
		}
		part := s
		part.x, part.y = s.x[from:i], s.y[from:i]
		if from > 0 {
			part.name = ""
		}
		list, from = append(list, part), i
	}
	return list
}
