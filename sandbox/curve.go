package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// The picture and its margins, in pixels.
const (
	width, height = 640, 360
	left, right   = 60, 20
	top, bottom   = 40, 50
)

// curve returns the loss by step as an SVG that is legible on light and dark pages.
func curve(job string, steps, losses []float64) string {
	lastStep, highest := slices.Max(steps), slices.Max(losses)
	if highest <= 0 {
		highest = 1
	}
	x := func(step float64) float64 { return left + (width-left-right)*step/lastStep }
	y := func(loss float64) float64 { return height - bottom - (height-top-bottom)*loss/highest }

	var points, ticks strings.Builder
	for i := range steps {
		fmt.Fprintf(&points, "%.1f,%.1f ", x(steps[i]), y(losses[i]))
	}
	for i := range 5 {
		part := float64(i) / 4
		fmt.Fprintf(&ticks, `<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`, x(part*lastStep), height-bottom+20, part*lastStep)
		fmt.Fprintf(&ticks, `<text x="%d" y="%.1f" text-anchor="end">%.3g</text>`, left-8, y(part*highest)+4, part*highest)
		fmt.Fprintf(&ticks, `<line x1="%d" x2="%d" y1="%[3]g" y2="%[3]g" stroke="#ddd"/>`, left, width-right, y(part*highest))
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
<text x="%d" y="24" font-size="14">%s: loss, last %.4g</text>
%s
<polyline points="%s" fill="none" stroke="#1a73e8" stroke-width="2"/>
<text x="%d" y="%d" text-anchor="middle">step of nn-worker 0</text>
</svg>
`, width, height, left, job, losses[len(losses)-1], ticks.String(), strings.TrimSpace(points.String()), (left+width-right)/2, height-10)
}
