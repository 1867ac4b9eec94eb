package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"persia/sandbox/stackgen"
)

// examples is the project of all of them: the manifests of some lie there.
var examples = filepath.Join(repository, "examples")

// triedChanges is the number of changes that a stack tries. The program accepts some.
const triedChanges = 12

// TestAcceptedStacksApply: what the program accepts, the API server accepts. Each
// refusal is a rule that config lacks.
func TestAcceptedStacksApply(t *testing.T) {
	nightly(t)
	t.Parallel()
	stacks, first := 2000, firstSeed(t)
	generator := newGenerator(t)
	server := newDryRun(t)
	started := time.Now()

	var mu sync.Mutex
	refusals, seen := map[string]finding{}, map[string]int{}
	var work errgroup.Group
	work.SetLimit(4)
	for i := range stacks {
		work.Go(func() error {
			seed := first + uint64(i)
			stack := generator.Generate(rand.New(rand.NewPCG(seed, 0)), triedChanges)
			for _, refusal := range server.refusals(t.Context(), stack) {
				mu.Lock()
				if seen[refusal.rule()]++; seen[refusal.rule()] == 1 {
					refusals[refusal.rule()] = finding{seed, stack, refusal}
				}
				mu.Unlock()
			}
			return nil
		})
	}
	require.NoError(t, work.Wait())

	report(t, "seeds %d to %d: %d distinct objects, in %s", first, first+uint64(stacks)-1, server.sent.Load(), time.Since(started).Round(time.Second))
	for rule, found := range refusals {
		t.Errorf("the program accepts what the API server refuses (%d stacks, first with seed %d):\n%s\nthe stack:\n%s",
			seen[rule], found.seed, found.refusal, found.stack)
	}
}

type finding struct {
	seed    uint64
	stack   stackgen.Stack
	refusal refusal
}

func newGenerator(t testing.TB) *stackgen.Generator {
	t.Helper()
	keys, err := stackgen.ReadSchema(filepath.Join(repository, "stack.schema.json"))
	require.NoError(t, err)
	begin, err := stackgen.Examples(repository)
	require.NoError(t, err)
	return stackgen.NewGenerator(keys, begin, os.DirFS(examples))
}
