package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// `make e2e` runs a dozen stacks, and `make nightly` everything.
var (
	long = flag.Bool("long", false, "run the long form of each test, with random seeds")
	seed = flag.Uint64("seed", 0, "the seed of what is random; without one, it is 1, or with -long a random number")
)

// nightly leaves a test to `make nightly`.
func nightly(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("only with -long")
	}
}

// forms returns how many rounds a test runs, in its short form or in its long one.
func forms(short, full int) int {
	if *long {
		return full
	}
	return short
}

// firstSeed returns the seed of all tests, and says how to repeat a run of this one.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	seed := chosenSeed()
	report(t, "`make nightly RUN='^%s$' SEED=%d` repeats this run", t.Name(), seed)
	return seed
}

var chosenSeed = sync.OnceValue(func() uint64 {
	switch {
	case *seed != 0:
		return *seed
	case *long:
		return uint64(rand.Uint32())
	default:
		return 1
	}
})

// report prints a result of a test. `make nightly` shows these lines.
func report(t *testing.T, format string, arguments ...any) {
	t.Helper()
	fmt.Fprintf(t.Output(), "DONE %s: %s\n", t.Name(), fmt.Sprintf(format, arguments...))
}
