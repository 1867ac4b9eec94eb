package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// point is a command with faults in it, and the command after it.
type point struct {
	from, to, next string
	strikes        []strike
}

// strike is a fault at a moment of a command: how much the command has printed by then,
// and how long ago.
type strike struct {
	fault fault
	line  int
	delay time.Duration
}

func (p point) String() string {
	var strikes []string
	for _, s := range p.strikes {
		strikes = append(strikes, fmt.Sprintf("%s %s after line %d", s.fault.name, s.delay.Round(time.Millisecond), s.line))
	}
	text := fmt.Sprintf("%s of %s to %s", strings.Join(strikes, " and "), kindOf(p.from, p.to), p.to)
	if p.next != p.to {
		text += " and then " + p.next
	}
	return strings.ReplaceAll(text, " ", "_")
}

// losesAnswers reports whether a request may have been carried out and not answered.
func (p point) losesAnswers() bool {
	return slices.ContainsFunc(p.strikes, func(s strike) bool { return s.fault.losesAnswers })
}

// faultsOf are the faults of each command: one, at random, but each kind before one comes
// again. Without a number of points each kind comes once. The commands that are killed
// then see one before that they survive.
func faultsOf(points int, random *rand.Rand) [][]fault {
	var series [][]fault
	for len(series) < points {
		for _, i := range random.Perm(len(faults)) {
			series = append(series, []fault{faults[i]})
		}
	}
	if points > 0 {
		return series[:points]
	}
	var kills, survived []fault
	for _, i := range random.Perm(len(faults)) {
		switch f := faults[i]; {
		case f.kills:
			kills = append(kills, f)
		case f.losesAnswers: // the command ends with an error
			series = append(series, []fault{f})
		default:
			survived = append(survived, f)
		}
	}
	for i, kill := range kills {
		series = append(series, append(survived[min(i, len(survived)):min(i+1, len(survived)):min(i+1, len(survived))], kill))
	}
	return series
}

// missed are the kinds of fault that have not come during a command.
func missed(hit map[string]int) [][]fault {
	var series [][]fault
	for _, f := range faults {
		if hit[f.name] == 0 {
			series = append(series, []fault{f})
		}
	}
	return series
}

// TestFaultsOf: whatever the number and the seed, no kind of fault is left out.
func TestFaultsOf(t *testing.T) {
	for seed := range uint64(20) {
		for _, points := range []int{0, len(faults), 67} {
			series := faultsOf(points, rand.New(rand.NewPCG(seed, 0)))
			seen := map[string]bool{}
			for _, faults := range series {
				for i, f := range faults {
					seen[f.name] = true
					assert.True(t, i == len(faults)-1 || !f.kills, "nothing comes after %s", f.name)
				}
			}
			assert.Len(t, seen, len(faults))
			if points > 0 {
				assert.Len(t, series, points)
			}
		}
	}
}

// draw chooses a command, the moments of its faults, and the command after it. Early
// moments are in its first half: it has not ended then.
func (x *chaosStack) draw(random *rand.Rand, faults []fault, early bool) point {
	nexts := map[string][]string{"destroy": {"small", "large"}, "small": {"large", "destroy"}, "large": {"small", "destroy"}}[x.current]
	p := point{from: x.current, to: nexts[random.IntN(len(nexts))]}
	limit := x.lines[kindOf(p.from, p.to)]
	if early {
		limit /= 2
	}
	var lines []int
	for range faults {
		lines = append(lines, random.IntN(limit))
	}
	slices.Sort(lines)
	for i, f := range faults {
		p.strikes = append(p.strikes, strike{fault: f, line: lines[i], delay: time.Duration(random.IntN(int(time.Second)))})
	}
	p.next = p.to
	if changesMind := random.IntN(3) == 0; changesMind && !p.losesAnswers() {
		p.next = nexts[random.IntN(len(nexts))]
	}
	return p
}

// inject begins a command and injects the faults. It counts those that came before the
// command had ended, and hit something.
func (x *chaosStack) inject(p point, hit map[string]int) {
	x.t.Helper()
	run := x.start(p.to)
	for _, s := range p.strikes {
		select {
		case <-run.ended:
		case <-run.printed(s.line):
			time.Sleep(s.delay)
		}
		ended := run.hasEnded()
		if s.fault.do(x, run) && !ended {
			hit[s.fault.name]++
		}
	}
	select {
	case <-run.ended:
	case <-time.After(patience):
		x.t.Errorf("the command did not end after the fault")
	}
	run.end()
}
