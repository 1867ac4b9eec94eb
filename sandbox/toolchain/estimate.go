package toolchain

import (
	"fmt"
	"slices"
	"time"
)

// estimate says how long the compilation still takes, from how long it once took and
// how this machine has compared so far.
type estimate struct {
	left time.Duration // as it once took
	// What is compiled: as it once took, and as it took here.
	expected, took time.Duration
}

func newEstimate(tools []tool, stale []string) *estimate {
	e := &estimate{}
	for _, t := range tools {
		if slices.Contains(stale, t.name) {
			e.left += t.takes
		}
	}
	return e
}

func (e *estimate) done(t tool, took time.Duration) {
	e.left -= t.takes
	e.expected += t.takes
	e.took += took
}

// String is empty when less than a minute is left.
func (e *estimate) String() string {
	left := e.left
	if e.expected > 0 {
		left = time.Duration(float64(left) * float64(e.took) / float64(e.expected))
	}
	minutes := int(left.Round(time.Minute).Minutes())
	if minutes == 0 {
		return ""
	}
	return fmt.Sprintf(" about %d min left", minutes)
}
