package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// goals are what a benchmark of a stack is to take, at most. docs/contribute/performance.md has them.
var goals = map[string]map[string]float64{
	"prod": {"up-s": 90, "second-preview-s": 2, "second-up-s": 4, "status-s": 1},
}

// upToKubectl is how long `up` may take, as a multiple of what kubectl takes for the same objects.
const upToKubectl = 1.05

// figure is what a benchmark has measured. Without a goal, it is 0.
type figure struct {
	stack, name    string
	measured, goal float64
}

// figureTable returns Markdown: each figure, its goal, and how much of the goal it takes.
func figureTable(figures []figure) string {
	var text strings.Builder
	text.WriteString("| stack | figure | measured | goal | measured / goal |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range figures {
		goal, ratio := "", ""
		if f.goal != 0 {
			goal, ratio = fmt.Sprintf("%.4g", f.goal), fmt.Sprintf("%.2f", f.measured/f.goal)
			if f.measured > f.goal {
				ratio += " missed"
			}
		}
		fmt.Fprintf(&text, "| %s | %s | %.4g | %s | %s |\n", f.stack, f.name, f.measured, goal, ratio)
	}
	return text.String()
}

// benchmarkFigures reports the figures of one stack, and remembers them for a table.
type benchmarkFigures struct {
	*testing.B
	stack string
	all   *[]figure
}

func (f benchmarkFigures) report(measured float64, name string) {
	f.ReportMetric(measured, name)
	*f.all = append(*f.all, figure{f.stack, name, measured, goals[f.stack][name]})
}

// againstKubectl compares the time of `up` in each row with its goals.
func againstKubectl(rows []comparison) []figure {
	var figures []figure
	for _, row := range rows {
		up := row.took[0].wall.Seconds()
		if goal := goals[row.stack]["up-s"]; goal != 0 {
			figures = append(figures, figure{row.stack, "up-s", up, goal})
		}
		for i, tool := range alternatives {
			if took := row.took[1+i].wall.Seconds(); tool.name == "kubectl" && took != 0 {
				figures = append(figures, figure{row.stack, "up / kubectl", up / took, upToKubectl})
			}
		}
	}
	return figures
}

func TestFigureTable(t *testing.T) {
	t.Parallel()
	const head = "| stack | figure | measured | goal | measured / goal |\n| --- | --- | --- | --- | --- |\n"
	for name, test := range map[string]struct {
		figure figure
		want   string
	}{
		"met":          {figure{"prod", "up-s", 45, 90}, "| prod | up-s | 45 | 90 | 0.50 |\n"},
		"just met":     {figure{"prod", "up / kubectl", 1.05, 1.05}, "| prod | up / kubectl | 1.05 | 1.05 | 1.00 |\n"},
		"missed":       {figure{"prod", "up-s", 99, 90}, "| prod | up-s | 99 | 90 | 1.10 missed |\n"},
		"without goal": {figure{"jobs=100", "engine-MiB", 1234.5, 0}, "| jobs=100 | engine-MiB | 1234 |  |  |\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, head+test.want, figureTable([]figure{test.figure}))
		})
	}
}
