package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"
)

// point is a command with a fault at a moment of it, and the command after it. The moment is how much the
// command has printed by then, and how long ago.
type point struct {
	from, to, next string
	fault          fault
	line           int
	delay          time.Duration
}

func (p point) String() string {
	text := fmt.Sprintf("%s %s after line %d of %s to %s", p.fault.name, p.delay.Round(time.Millisecond), p.line, kindOf(p.from, p.to), p.to)
	if p.next != p.to {
		text += " and then " + p.next
	}
	return strings.ReplaceAll(text, " ", "_")
}

// manyFaults returns the faults of many commands: at random, but no kind comes again before each other
// kind has come.
func manyFaults(points int, random *rand.Rand) []fault {
	var series []fault
	for len(series) < points {
		for _, i := range random.Perm(len(faults)) {
			series = append(series, faults[i])
		}
	}
	return series[:points]
}

// draw chooses a command, the moment of its fault, and the command after it.
func (x *chaosStack) draw(random *rand.Rand, fault fault) point {
	nexts := map[string][]string{"destroy": {"small", "large"}, "small": {"large", "destroy"}, "large": {"small", "destroy"}}[x.current]
	p := point{from: x.current, to: nexts[random.IntN(len(nexts))], fault: fault, delay: time.Duration(random.IntN(int(time.Second)))}
	p.line = random.IntN(x.lines[kindOf(p.from, p.to)])
	p.next = p.to
	if changesMind := random.IntN(3) == 0; changesMind && !fault.losesAnswers {
		p.next = nexts[random.IntN(len(nexts))]
	}
	return p
}

// start begins the command that brings the stack to a state. It closes printed when the command has printed
// so many lines.
func (x *chaosStack) start(to string, lines int, variables ...string) (run *command, printed chan struct{}) {
	x.t.Helper()
	name := "destroy"
	if to != "destroy" {
		x.write(to)
		name = "up"
	}
	printed = make(chan struct{})
	return startCommand(x.t, func(number int, _ string) {
		if number == lines {
			close(printed)
		}
	}, variables, name, "--stack", "madeup", "--stacks", x.stack.project, "--dir", x.dir), printed
}

// inject begins a command and injects the fault. It counts the fault if it came before the command had
// ended, and hit something.
func (x *chaosStack) inject(p point, hit map[string]int) {
	x.t.Helper()
	run, printed := x.start(p.to, p.line+1)
	select {
	case <-run.ended:
	case <-printed:
		time.Sleep(p.delay)
	}
	ended := run.over() != ""
	if p.fault.do(x, run) && !ended {
		hit[p.fault.name]++
	}
	select {
	case <-run.ended:
	case <-time.After(patience):
		x.t.Errorf("the command did not end after the fault")
	}
	run.signal(syscall.SIGKILL)
	<-run.ended
}
