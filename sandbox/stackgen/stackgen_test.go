package stackgen

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const repository = "../.."

func read(t *testing.T) (*Schema, []Stack) {
	t.Helper()
	schema, err := ReadSchema(filepath.Join(repository, "stack.schema.json"))
	require.NoError(t, err)
	begin, err := Examples(repository)
	require.NoError(t, err)
	return schema, begin
}

func TestExamplesAreAccepted(t *testing.T) {
	_, begin := read(t)
	for i, stack := range begin {
		assert.NoError(t, stack.Check(os.DirFS(filepath.Join(repository, "examples"))), i)
	}
}

// TestGenerate: each seed makes one stack, which the program accepts.
func TestGenerate(t *testing.T) {
	schema, begin := read(t)
	files := os.DirFS(filepath.Join(repository, "examples"))
	generator := NewGenerator(schema, begin, files)
	changed := 0
	for seed := range uint64(20) {
		stack := generator.Generate(rand.New(rand.NewPCG(seed, 0)), 20)
		assert.NoError(t, stack.Check(files), "seed %d:\n%s", seed, stack)
		assert.Equal(t, stack, generator.Generate(rand.New(rand.NewPCG(seed, 0)), 20), "seed %d", seed)
		if !slices.ContainsFunc(begin, func(s Stack) bool { return s.String() == stack.String() }) {
			changed++
		}
	}
	assert.Greater(t, changed, 10)
}

// TestTables checks that the tables of values name only existing keys.
func TestTables(t *testing.T) {
	schema, _ := read(t)
	known := map[string]bool{}
	for _, key := range schema.Keys() {
		known[key.String()], known[key.Property], known[key.Definition] = true, true, true
	}
	names := slices.Concat(slices.Collect(maps.Keys(usuals)), slices.Collect(maps.Keys(needed)), slices.Collect(maps.Keys(oneOf)),
		slices.Collect(maps.Keys(excluding)), slices.Collect(maps.Keys(usualEntries)), slices.Collect(maps.Keys(named)), slices.Collect(maps.Keys(olderPaths)))
	for _, name := range names {
		assert.True(t, known[name], "the schema has no %s", name)
	}
}
