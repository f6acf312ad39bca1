// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// canvas is what a plot is drawn on. Colours are of the form #rrggbb.
type canvas interface {
	line(points [][2]float64, color string, width float64)
	text(x, y float64, anchor anchor, color, s string)
}

// anchor says which point of a text is at its place.
type anchor int

const (
	atStart anchor = iota
	atMiddle
	atEnd
)

const plotWidth, panelHeight, plotTop, plotLeft, plotRight = 800, 170, 44, 86, 780

// colors of lines, told apart by those who do not see all of them too (Okabe and Ito).
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"}

// panel is one diagram of a plot.
type panel struct {
	title string
	lines []Line
	steps bool // drawn as steps from zero, for counts
}

func (s *Series) panels() []panel {
	p := []panel{{title: "payload rate by flow, Gb/s", lines: s.Flows}, {title: "queue, bytes (longest of each step)", lines: s.Queues}}
	events := panel{title: "CE marks and CNPs that came to hosts, per " + s.Step.String(), lines: []Line{s.Marks, s.CNPs}, steps: true}
	if s.Pauses.sum() > 0 {
		events.title = "CE marks and CNPs that came to hosts, PFC frames, per " + s.Step.String()
		events.lines = append(events.lines, s.Pauses)
	}
	return append(p, events)
}

func (s *Series) draw(title string, c canvas) {
	c.text(plotLeft, 20, atStart, "#000000", title)
	span := float64(len(s.Marks.Values)) * float64(s.Step)
	unit, name := simtime.Microsecond, "us"
	if span > float64(5*simtime.Millisecond) {
		unit, name = simtime.Millisecond, "ms"
	}
	for i, p := range s.panels() {
		top, bottom := float64(plotTop+i*panelHeight+22), float64(plotTop+(i+1)*panelHeight-24)
		s.drawPanel(c, p, top, bottom, span/float64(unit), name)
	}
}

func (s *Series) drawPanel(c canvas, p panel, top, bottom, span float64, unit string) {
	high := 0.0
	for _, l := range p.lines {
		for _, v := range l.Values {
			high = max(high, v)
		}
	}
	step := tick(high, 4)
	high = max(math.Ceil(high/step), 1) * step
	y := func(v float64) float64 { return bottom - v/high*(bottom-top) }
	x := func(v float64) float64 { return plotLeft + v/span*(plotRight-plotLeft) }
	c.text(plotLeft, top-8, atStart, "#000000", p.title)
	for v := 0.0; v <= high*1.0001; v += step {
		c.line([][2]float64{{plotLeft, y(v)}, {plotRight, y(v)}}, "#dddddd", 1)
		c.text(plotLeft-6, y(v)+4, atEnd, "#000000", fmt.Sprintf("%.6g", v))
	}
	for t, d := 0.0, tick(span, 8); t <= span*1.0001; t += d {
		c.line([][2]float64{{x(t), bottom}, {x(t), bottom + 4}}, "#000000", 1)
		label := fmt.Sprintf("%.6g", t)
		if t == 0 {
			label += " " + unit
		}
		c.text(x(t), bottom+17, atMiddle, "#000000", label)
	}
	c.line([][2]float64{{plotLeft, bottom}, {plotRight, bottom}}, "#000000", 1)
	at := float64(plotRight)
	for i := len(p.lines) - 1; i >= 0; i-- {
		l, col := p.lines[i], colors[i%len(colors)]
		var points [][2]float64
		for k, v := range l.Values {
			w := span / float64(len(l.Values))
			if p.steps {
				points = append(points, [2]float64{x(float64(k) * w), y(v)}, [2]float64{x(float64(k+1) * w), y(v)})
			} else {
				points = append(points, [2]float64{x((float64(k) + 0.5) * w), y(v)})
			}
		}
		c.line(points, col, 1.5)
		if len(p.lines) <= 8 {
			c.text(at, top-8, atEnd, col, l.Name)
			at -= float64(7*len(l.Name) + 14)
		}
	}
}

// tick is a round distance with at most n of them in the range.
func tick(span float64, n int) float64 {
	if span <= 0 {
		return 1
	}
	d := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(m*d) <= float64(n) {
			return m * d
		}
	}
	return 10 * d
}

func (s *Series) height() int { return plotTop + len(s.panels())*panelHeight }

// SVG draws the series.
func (s *Series) SVG(title string) []byte {
	c := &svgCanvas{}
	s.draw(title, c)
	var out bytes.Buffer
	out.WriteString("<!-- SPDX-License-Identifier: Apache-2.0 -->\n")
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="12">`+"\n", plotWidth, s.height())
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="white"/>`+"\n%s</svg>\n", plotWidth, s.height(), c.b.String())
	return out.Bytes()
}

type svgCanvas struct{ b strings.Builder }

func (c *svgCanvas) line(points [][2]float64, color string, width float64) {
	var p []string
	for _, q := range points {
		p = append(p, fmt.Sprintf("%.1f,%.1f", q[0], q[1]))
	}
	fmt.Fprintf(&c.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%g"/>`+"\n", strings.Join(p, " "), color, width)
}

func (c *svgCanvas) text(x, y float64, a anchor, color, s string) {
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, [...]string{"start", "middle", "end"}[a], color, html.EscapeString(s))
}

// PNG draws the same.
func (s *Series) PNG(title string) ([]byte, error) {
	c := &pngCanvas{image.NewRGBA(image.Rect(0, 0, plotWidth, s.height()))}
	draw.Draw(c.img, c.img.Bounds(), image.White, image.Point{}, draw.Src)
	s.draw(title, c)
	var out bytes.Buffer
	if err := png.Encode(&out, c.img); err != nil {
		return nil, fmt.Errorf("lab: plot: %w", err)
	}
	return out.Bytes(), nil
}

type pngCanvas struct{ img *image.RGBA }

func rgb(s string) color.RGBA {
	c := color.RGBA{A: 255}
	if _, err := fmt.Sscanf(s, "#%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
		panic("lab: colour " + s) // written here
	}
	return c
}

// line fills a rectangle along each piece and a square at each joint.
func (c *pngCanvas) line(points [][2]float64, color string, width float64) {
	b := c.img.Bounds()
	r := vector.NewRasterizer(b.Dx(), b.Dy())
	quad := func(p ...[2]float64) {
		r.MoveTo(float32(p[0][0]), float32(p[0][1]))
		for _, q := range p[1:] {
			r.LineTo(float32(q[0]), float32(q[1]))
		}
		r.ClosePath()
	}
	src := image.NewUniform(rgb(color))
	for i := 1; i < len(points); i++ {
		p, q := points[i-1], points[i]
		n := math.Hypot(q[0]-p[0], q[1]-p[1])
		if n == 0 {
			continue
		}
		// half a width across, and as much ahead so that joints close
		ux, uy := (q[0]-p[0])/n*width/2, (q[1]-p[1])/n*width/2
		quad([2]float64{p[0] - ux - uy, p[1] - uy + ux}, [2]float64{q[0] + ux - uy, q[1] + uy + ux}, [2]float64{q[0] + ux + uy, q[1] + uy - ux}, [2]float64{p[0] - ux + uy, p[1] - uy - ux})
	}
	r.Draw(c.img, b, src, image.Point{})
}

func (c *pngCanvas) text(x, y float64, a anchor, color, s string) {
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(rgb(color)), Face: basicfont.Face7x13}
	w := float64(d.MeasureString(s).Ceil())
	x -= [...]float64{0, w / 2, w}[a]
	d.Dot = fixed.P(int(math.Round(x)), int(math.Round(y)))
	d.DrawString(s)
}
