package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/toolchain"
)

// repository is the folder of Pulumi.yaml and the stack files.
const repository = "../.."

// The toolchain and the sandbox command, built once for all tests.
var (
	tools      toolchain.Tools
	executable string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	groups := append(toolchain.Chosen(), toolchain.OfStacks)
	tools, err = toolchain.Build(context.Background(), modules, filepath.Join(repository, ".sandbox", "bin"), os.Stdout, groups...)
	if err != nil {
		return 0, err
	}
	// The one that `make e2e` has compiled.
	executable = filepath.Join(binDir(), "sandbox")
	build := exec.Command(filepath.Join(repository, "scripts", "compile-sandbox.sh"), ".sandbox/bin/sandbox")
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("compile the sandbox command: %w\n%s", err, output)
	}
	return m.Run(), nil
}

// modules is the folder of the toolchain's modules.
var modules = filepath.Join(repository, "sandbox", "toolchain")

// compile compiles more programs, as the command does for the stacks that need them.
func compile(t testing.TB, groups ...toolchain.Group) toolchain.Tools {
	t.Helper()
	return testkit.Must(toolchain.Build(t.Context(), modules, binDir(), t.Output(), groups...))(t)
}

func logFiles(t testing.TB, pattern string) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		t.Logf("%s:\n%s", path, text)
	}
}

// patience limits each wait for what a controller, a server or a command does, except for trainings. The tests share a
// machine that may be slow, so it is long: only a test that fails waits for all of it.
const patience = 5 * time.Minute

// await waits until a condition holds. It formats the arguments of the message after the wait.
func await(t testing.TB, condition func() bool, message string, arguments ...any) {
	t.Helper()
	awaitUnless(t, patience, nothingLost, condition, message, arguments...)
}

// awaitUnless is [await] that also gives up when lost says why the condition can no longer hold.
func awaitUnless(t testing.TB, patience time.Duration, lost func() string, condition func() bool, message string, arguments ...any) {
	t.Helper()
	if why, holds := eventually(patience, lost, condition); !holds {
		require.Fail(t, "waited for nothing", "%s: %s", fmt.Sprintf(message, arguments...), why)
	}
}

// nothingLost is for a wait that nothing ends early.
func nothingLost() string { return "" }

// eventually waits until a condition holds, and says why it does not. It calls the condition in the goroutine
// of the test, where the condition may end the test, which [require.Eventually] does not allow. The longer it
// has waited, the more seldom it looks, since each look costs the processors what others wait for.
func eventually(patience time.Duration, lost func() string, condition func() bool) (why string, holds bool) {
	const shortest, longest, pause = 100 * time.Millisecond, 500 * time.Millisecond, time.Second
	started, looked, last := time.Now(), time.Now(), ""
	for time.Since(started) < patience {
		if condition() {
			return "", true
		}
		if time.Since(looked) >= pause {
			looked = time.Now()
			// One look may see a program that is replaced at this moment.
			if why = lost(); why != "" && why == last {
				return why, condition()
			}
			last = why
		}
		time.Sleep(min(max(shortest, time.Since(started)/20), longest))
	}
	return "it did not come in " + patience.String(), false
}

// operation is a command of a sandbox that runs beside the test.
type operation struct {
	ended chan struct{}
	err   error
}

func begin(do func() error) *operation {
	o := &operation{ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		o.err = do()
	}()
	return o
}

func (o *operation) wait() error {
	<-o.ended
	return o.err
}

// over says that an operation has ended, for a wait for what it does.
func (o *operation) over() string {
	select {
	case <-o.ended:
		return fmt.Sprintf("the operation has ended: %v", o.err)
	default:
		return ""
	}
}

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
