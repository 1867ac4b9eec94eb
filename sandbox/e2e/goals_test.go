package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goals are the upper limits of the benchmarks of stacks, and of the commands that record their times.
// docs/contribute/performance.md has them.
var goals = map[string]map[string]float64{
	"prod":     {"up-s": 90, "second-preview-s": 2, "second-up-s": 4, "status-s": 1},
	"jobs=10":  {requestsPerCluster: 19},
	"jobs=100": {requestsPerCluster: 19},
	"make test": {
		"warm-s": 15 * 60,
		"cold-s": 25 * 60, // on a new machine with empty caches, everything compiled
	},
	"cold start": {
		"compiled-s": 12 * 60,
		"archive-s":  60,
	},
}

// requestsPerCluster is how many requests the NATS operator makes, divided by the number of NatsClusters. The
// operator makes 19 for a NatsCluster with one server whatever it says, and about as many when it starts, which
// count only in small stacks.
const requestsPerCluster = "nats-operator-requests/cluster"

// upToKubectl is how long `up` may take, as a multiple of kubectl's time for the same objects.
const upToKubectl = 1.05

// figure is the result of a benchmark, or [notMeasured]. Without a goal, the goal is 0.
type figure struct {
	stack, name    string
	measured, goal float64
}

// notMeasured is the measured value of a figure whose command has failed, or has never been run.
var notMeasured = math.NaN()

// figureTable returns Markdown: each figure, its goal, and how much of the goal it takes.
func figureTable(figures []figure) string {
	var text strings.Builder
	text.WriteString("| stack | figure | measured | goal | measured / goal |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range figures {
		measured, goal, ratio := fmt.Sprintf("%.4g", f.measured), "", ""
		if f.goal != 0 {
			goal, ratio = fmt.Sprintf("%.4g", f.goal), fmt.Sprintf("%.2f", f.measured/f.goal)
			if f.measured > f.goal {
				ratio += " missed"
			}
		}
		if math.IsNaN(f.measured) {
			measured, ratio = "not measured", ""
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", f.stack, f.name, measured, goal, ratio)
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
			if tool.name != "kubectl" {
				continue
			}
			ratio := notMeasured // it has failed
			if took := row.took[1+i].wall.Seconds(); took != 0 {
				ratio = up / took
			}
			figures = append(figures, figure{row.stack, "up / kubectl", ratio, upToKubectl})
		}
	}
	return figures
}

// growth returns how much memory each process takes for another resource, in KiB, from the figures of a small and a
// large stack, or nothing if one of them was not measured.
func growth(figures []figure, small, large string) []figure {
	measured := map[string]float64{}
	for _, f := range figures {
		measured[f.stack+" "+f.name] = f.measured
	}
	if measured[small+" resources"] == 0 || measured[large+" resources"] == 0 {
		return nil
	}
	resources := measured[large+" resources"] - measured[small+" resources"]
	var grown []figure
	for _, process := range []string{engineProcess, stateProcess, programProcess} {
		name := process + "-MiB"
		grown = append(grown, figure{small + " to " + large, process + "-KiB/resource",
			1024 * (measured[large+" "+name] - measured[small+" "+name]) / resources, 0})
	}
	return grown
}

// printTables prints tables next to the results of benchmarks. It does not use the log of a benchmark: go test
// prints ten lines of it, and none if the benchmark has parts.
func printTables(tables ...string) {
	for _, table := range tables {
		fmt.Printf("\n%s", table)
	}
}

// BenchmarkRecorded prints the times that commands have recorded in this clone when they were last run, with their
// goals.
func BenchmarkRecorded(b *testing.B) {
	figures, err := recordedFigures(filepath.Join(repository, ".sandbox", "times"))
	require.NoError(b, err)
	printTables(figureTable(figures))
}

// recordedFigures reads the file that scripts/record-time.sh writes: a line for each run, with its name and its seconds. It
// returns the last run of each command. The figure of a command without a run is not measured.
func recordedFigures(file string) ([]figure, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	last := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, seconds, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if last[name], err = strconv.ParseFloat(seconds, 64); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
	}
	var figures []figure
	for _, command := range []string{"cold start", "make test"} {
		for _, how := range slices.Sorted(maps.Keys(goals[command])) {
			measured, ok := last[command+", "+strings.TrimSuffix(how, "-s")]
			if !ok {
				measured = notMeasured
			}
			figures = append(figures, figure{command, how, measured, goals[command][how]})
		}
	}
	return figures, nil
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
		"not measured": {figure{"prod", "up / kubectl", notMeasured, 1.05}, "| prod | up / kubectl | not measured | 1.05 |  |\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, head+test.want, figureTable([]figure{test.figure}))
		})
	}
}

// TestAgainstKubectl: a stack keeps its row when kubectl fails.
func TestAgainstKubectl(t *testing.T) {
	t.Parallel()
	took := func(seconds ...int) []cost {
		var costs []cost
		for _, s := range seconds {
			costs = append(costs, cost{wall: time.Duration(s) * time.Second})
		}
		return costs
	}
	rows := []comparison{{"prod", 50, took(84, 80, 1, 1)}, {"jobs=1", 47, took(5, 0, 1, 1)}}
	assert.Equal(t, "| stack | figure | measured | goal | measured / goal |\n| --- | --- | --- | --- | --- |\n"+
		"| prod | up-s | 84 | 90 | 0.93 |\n"+
		"| prod | up / kubectl | 1.05 | 1.05 | 1.00 |\n"+
		"| jobs=1 | up / kubectl | not measured | 1.05 |  |\n", figureTable(againstKubectl(rows)))
}

// TestRecordedFigures: the last run of each command counts.
func TestRecordedFigures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "times")
	require.NoError(t, os.WriteFile(file, []byte("make test, warm\t2000\ncold start, archive\t19\nmake test, warm\t810\n"), 0o600))
	figures, err := recordedFigures(file)
	require.NoError(t, err)
	assert.Equal(t, "| stack | figure | measured | goal | measured / goal |\n| --- | --- | --- | --- | --- |\n"+
		"| cold start | archive-s | 19 | 60 | 0.32 |\n"+
		"| cold start | compiled-s | not measured | 720 |  |\n"+
		"| make test | cold-s | not measured | 1500 |  |\n"+
		"| make test | warm-s | 810 | 900 | 0.90 |\n", figureTable(figures))

	figures, err = recordedFigures(filepath.Join(t.TempDir(), "times"))
	require.NoError(t, err)
	assert.Len(t, figures, 4, "no command has been run")
	require.NoError(t, os.WriteFile(file, []byte("make test, warm\tlong\n"), 0o600))
	_, err = recordedFigures(file)
	assert.ErrorContains(t, err, "long")
}

// TestGrowth: 100 jobs have 2,200 resources more than one, and take the engine 220 MiB more.
func TestGrowth(t *testing.T) {
	t.Parallel()
	grown := growth([]figure{
		{"jobs=1", "engine-MiB", 180, 0}, {"jobs=1", "resources", 45, 0},
		{"jobs=100", "engine-MiB", 400, 0}, {"jobs=100", "resources", 2245, 0},
	}, "jobs=1", "jobs=100")
	assert.Equal(t, figure{"jobs=1 to jobs=100", "engine-KiB/resource", 102.4, 0}, grown[0])
	assert.Empty(t, growth([]figure{{"jobs=1", "resources", 45, 0}}, "jobs=1", "jobs=100"), "one stack alone")
}
