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

// manyFaults returns the faults of many commands: one each, at random, but no kind comes
// again before each other kind has come.
func manyFaults(points int, random *rand.Rand) [][]fault {
	var series [][]fault
	for len(series) < points {
		for _, i := range random.Perm(len(faults)) {
			series = append(series, []fault{faults[i]})
		}
	}
	return series[:points]
}

// fewFaults returns the faults of two commands: one that ends the first, and one that the
// second survives before another kills it.
func fewFaults(random *rand.Rand) [][]fault {
	var ends, survived, kills fault
	for _, i := range random.Perm(len(faults)) {
		switch f := faults[i]; {
		case f.kills:
			kills = f
		case f.losesAnswers:
			ends = f
		default:
			survived = f
		}
	}
	return [][]fault{{ends}, {survived, kills}}
}

// kindsOf returns the faults of a series, each kind once.
func kindsOf(series [][]fault) []fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		return !slices.ContainsFunc(series, func(faults []fault) bool {
			return slices.ContainsFunc(faults, func(other fault) bool { return other.name == f.name })
		})
	})
}

// missed returns a command for each kind of fault that is due and has hit none.
func missed(due []fault, hit map[string]int) [][]fault {
	var series [][]fault
	for _, f := range due {
		if hit[f.name] == 0 {
			series = append(series, []fault{f})
		}
	}
	return series
}

// TestFaultSeries: whatever the seed, the long form has each kind of fault, and the short
// one a fault of each effect.
func TestFaultSeries(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		many := manyFaults(chaosPoints, random)
		assert.Len(t, many, chaosPoints)
		assert.Len(t, kindsOf(many), len(faults))
		few := fewFaults(random)
		effects := map[[2]bool]bool{}
		for _, f := range slices.Concat(few...) {
			effects[[2]bool{f.kills, f.losesAnswers}] = true
		}
		assert.Len(t, effects, 3, "seed %d", seed)
		assert.Equal(t, []bool{false, true}, []bool{few[1][0].kills, few[1][1].kills}, "nothing comes after a kill")
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
