package workflows

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCompileSandbox: the script compiles when anything has changed, however it has
// changed, and only then.
func TestCompileSandbox(t *testing.T) {
	long := time.Now().Add(-24 * time.Hour)
	cases := map[string]struct {
		change func(p compiled)
		want   string // what the program prints then
	}{
		"nothing":     {func(compiled) {}, "one"},
		"the program": {func(p compiled) { p.write("sandbox/word/word.go", `package word; const Word = "two"`) }, "two"},
		"to an older file": {func(p compiled) {
			p.write("sandbox/word/word.go", `package word; const Word = "two"`)
			p.date("sandbox/word/word.go", long)
		}, "two"},
		"a file more":          {func(p compiled) { p.write("sandbox/word/init.go", `package word; func init() { Suffix = "!" }`) }, "one!"},
		"a file less":          {func(p compiled) { p.remove("sandbox/word/question.go") }, "one"},
		"the binary is gone":   {func(p compiled) { p.remove("bin/program") }, "one"},
		"only documentation":   {func(p compiled) { p.write("docs/page.md", "") }, "one"},
		"how Go is set up":     {func(p compiled) { p.t.Setenv("GOFLAGS", "-tags=loud") }, "ONE"},
		"to what is no source": {func(p compiled) { p.write("Pulumi.yaml", "") }, "one"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p := newCompiled(t)
			p.compile()
			require.Equal(t, "one", p.run())

			test.change(p)
			before := p.stamp()
			p.compile()
			assert.Equal(t, test.want, p.run())
			if name == "nothing" || name == "only documentation" {
				assert.Equal(t, before, p.stamp(), "it was not compiled again")
			} else {
				assert.NotEqual(t, before, p.stamp(), "it was compiled again")
			}
			before = p.stamp()
			p.compile()
			assert.Equal(t, before, p.stamp(), "once")
		})
	}
}

// TestCompileSandboxAtOnce: commands that start at the same time all find it compiled,
// with flock(1) and where there is none.
func TestCompileSandboxAtOnce(t *testing.T) {
	for name, path := range map[string]func(t *testing.T) string{
		"with flock":    func(*testing.T) string { return os.Getenv("PATH") },
		"without flock": pathWithoutFlock,
	} {
		t.Run(name, func(t *testing.T) {
			p := newCompiled(t)
			t.Setenv("PATH", path(t))
			ended := make(chan error, 3)
			for range cap(ended) {
				go func() { ended <- p.tryCompile() }()
			}
			for range cap(ended) {
				assert.NoError(t, <-ended)
			}
			assert.Equal(t, "one", p.run())
			left, err := filepath.Glob(filepath.Join(p.dir, "bin", ".program.made.?*"))
			require.NoError(t, err)
			for _, path := range left {
				assert.Equal(t, ".program.made.lock", filepath.Base(path), "stamps that are left")
			}
		})
	}
}

// pathWithoutFlock is a folder with the programs that the script runs, except flock.
func pathWithoutFlock(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"bash", "basename", "dirname", "find", "go", "mkdir", "mktemp", "mv", "rm"} {
		program, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(program, filepath.Join(dir, name)))
	}
	return dir
}

// compiled is a repository with a sandbox command.
type compiled struct {
	t   *testing.T
	dir string
}

func newCompiled(t *testing.T) compiled {
	t.Helper()
	t.Setenv("GOFLAGS", "")
	p := compiled{t, t.TempDir()}
	script, err := os.ReadFile(filepath.Join(repository, "scripts", "compile-sandbox.sh"))
	require.NoError(t, err)
	p.write("scripts/compile-sandbox.sh", string(script))
	p.write("sandbox/go.mod", "module sandbox\n\ngo 1.26\n")
	p.write("sandbox/cmd/sandbox/main.go", `package main; import ("os"; "sandbox/word"); func main() { os.Stdout.WriteString(word.Word + word.Suffix) }`)
	p.write("sandbox/word/word.go", "//go:build !loud\n\npackage word; const Word = \"one\"")
	p.write("sandbox/word/loud.go", "//go:build loud\n\npackage word; const Word = \"ONE\"")
	p.write("sandbox/word/suffix.go", `package word; var Suffix string`)
	p.write("sandbox/word/question.go", `package word; func init() { if len(Suffix) > 1 { Suffix = "?" } }`)
	p.write("docs/index.md", "")
	return p
}

func (p compiled) write(path, text string) {
	p.t.Helper()
	path = filepath.Join(p.dir, path)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o755))
}

func (p compiled) remove(path string) {
	p.t.Helper()
	require.NoError(p.t, os.Remove(filepath.Join(p.dir, path)))
}

func (p compiled) date(path string, at time.Time) {
	p.t.Helper()
	require.NoError(p.t, os.Chtimes(filepath.Join(p.dir, path), at, at))
}

func (p compiled) compile() {
	p.t.Helper()
	require.NoError(p.t, p.tryCompile())
}

func (p compiled) tryCompile() error {
	output, err := exec.Command(filepath.Join(p.dir, "scripts", "compile-sandbox.sh"), "bin/program").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func (p compiled) run() string {
	p.t.Helper()
	output, err := exec.Command(filepath.Join(p.dir, "bin", "program")).Output()
	require.NoError(p.t, err)
	return string(output)
}

// stamp is when the program was last compiled.
func (p compiled) stamp() time.Time {
	p.t.Helper()
	info, err := os.Stat(filepath.Join(p.dir, "bin", ".program.made"))
	require.NoError(p.t, err)
	return info.ModTime()
}
