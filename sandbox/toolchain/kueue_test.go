package toolchain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/workload/kueue/definitions"
)

// TestKueueOfOneVersion checks that the image and the definitions that the program registers are
// of the version that the sandbox runs.
func TestKueueOfOneVersion(t *testing.T) {
	b := &builder{moduleRoot: "."}
	var err error
	b.moduleRoot, err = filepath.Abs(b.moduleRoot)
	require.NoError(t, err)
	version, err := b.version(t.Context(), named("kueue"))
	require.NoError(t, err)
	assert.Equal(t, version, config.ImageKueue.Tag)

	// A module that is not in Go's cache has no folder yet.
	_, err = b.goCommand(t.Context(), named("kueue").dir, "mod", "download", named("kueue").module)
	require.NoError(t, err)
	module, err := b.goCommand(t.Context(), named("kueue").dir, "list", "-m", "-f", "{{.Dir}}", named("kueue").module)
	require.NoError(t, err)
	generated, err := definitions.Generate(os.DirFS(module))
	require.NoError(t, err)
	kept, err := os.ReadFile(filepath.Join("..", "..", "workload", "kueue", "definitions", "definitions.json"))
	require.NoError(t, err)
	assert.Equal(t, string(generated), string(kept), "go generate ./workload/kueue/definitions rewrites it")
}
