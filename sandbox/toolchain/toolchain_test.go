package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// tiny is a tool whose module needs nothing but the standard library.
var tiny = tool{
	Name: "tiny", Dir: "tiny", Module: "example.com/tiny", Package: "example.com/tiny",
	Variables: []variable{{"main.version", "{version}"}},
}

const tinyMain = `package main

var version = "unset"

func main() { println("tiny", version) }
`

// tinyRoot writes the module of tiny and returns the module root.
func tinyRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "tiny", "go.mod"), "module example.com/tiny\n\ngo 1.26.0\n")
	write(t, filepath.Join(root, "tiny", "go.sum"), "")
	write(t, filepath.Join(root, "tiny", "main.go"), tinyMain)
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// builderOf returns a builder of a tool in a module root.
func builderOf(t *testing.T, of tool, root string) *builder {
	t.Helper()
	b := &builder{moduleRoot: root, binDir: t.TempDir(), patience: patience}
	var err error
	b.goVersion, err = b.goCommand(t.Context(), of.Dir, "env", "GOVERSION")
	require.NoError(t, err)
	return b
}

func TestStale(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, b *builder, changed *tool)
		want   []string
	}{
		"nothing changed":            {func(*testing.T, *builder, *tool) {}, nil},
		"another requirement":        {change: appendTo("tiny/go.mod"), want: []string{"tiny"}},
		"another Go":                 {func(_ *testing.T, b *builder, _ *tool) { b.goVersion = "go1.99" }, []string{"tiny"}},
		"another package":            {func(_ *testing.T, _ *builder, changed *tool) { changed.Package += "/v2" }, []string{"tiny"}},
		"another source of our own":  {func(_ *testing.T, _ *builder, changed *tool) { changed.Package = "./" }, []string{"tiny"}},
		"another linker variable":    {func(_ *testing.T, _ *builder, changed *tool) { changed.Variables = nil }, []string{"tiny"}},
		"the binary is gone":         {removeBinary("tiny"), []string{"tiny"}},
		"the stamp is gone":          {removeBinary(".tiny.stamp"), []string{"tiny"}},
		"the binary is an empty one": {func(t *testing.T, b *builder, _ *tool) { write(t, filepath.Join(b.binDir, "tiny"), "") }, []string{"tiny"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, tiny, tinyRoot(t))
			stamp := testkit.Must(b.stamp(tiny))(t)
			write(t, filepath.Join(b.binDir, "tiny"), "binary")
			write(t, filepath.Join(b.binDir, ".tiny.stamp"), stamp)

			changed := tiny
			test.change(t, b, &changed)
			stale := testkit.Must(b.stale([]tool{changed}))(t)
			assert.Equal(t, test.want, stale)
		})
	}
}

func appendTo(file string) func(*testing.T, *builder, *tool) {
	return func(t *testing.T, b *builder, _ *tool) {
		path := filepath.Join(b.moduleRoot, file)
		content := testkit.Read(t, path)
		write(t, path, content+"// changed\n")
	}
}

func removeBinary(name string) func(*testing.T, *builder, *tool) {
	return func(t *testing.T, b *builder, _ *tool) {
		require.NoError(t, os.Remove(filepath.Join(b.binDir, name)))
	}
}

func TestAFailedCompilationLeavesNoBinary(t *testing.T) {
	root := tinyRoot(t)
	write(t, filepath.Join(root, "tiny", "main.go"), "package main\n\nfunc main() { undefined() }\n")
	b := builderOf(t, tiny, root)

	err := b.compile(t.Context(), tiny, "v1.2.3")
	require.ErrorContains(t, err, "undefined: undefined", "the compiler's own words")
	stale := testkit.Must(b.stale([]tool{tiny}))(t)
	assert.Equal(t, []string{"tiny"}, stale)
	assert.NoFileExists(t, filepath.Join(b.binDir, "tiny"))
}

func TestEveryToolIsPinned(t *testing.T) {
	b := testkit.Must(newBuilder(t.Context(), ".", t.TempDir()))(t)
	for _, tool := range all {
		t.Run(tool.Name, func(t *testing.T) {
			gomod := testkit.Read(t, filepath.Join(tool.Dir, "go.mod"))
			if !tool.own() {
				assert.Contains(t, gomod, tool.Package, "a tool of the module")
			}
			version := testkit.Must(b.version(t.Context(), tool))(t)
			assert.Contains(t, gomod, tool.Module+" "+version)
		})
	}
}

// named returns the tool with a name.
func named(name string) tool {
	return all[slices.IndexFunc(all, func(t tool) bool { return t.Name == name })]
}
