package workflows

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestCompileSandboxAtOnce checks that commands that start at the same time all find the sandbox
// compiled, with flock(1) and without.
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

// TestTakeSandbox: the script takes the program that the repository records from an archive, and says why
// it compiles when the archive has another one.
func TestTakeSandbox(t *testing.T) {
	for name, test := range map[string]struct {
		change func(p compiled, archive string)
		// halves are how many halves of the archive the server sends before it hangs; 2 are all.
		halves int
		said   string // nothing, where the program is taken
	}{
		"recorded":       {func(compiled, string) {}, 2, ""},
		"documentation":  {func(p compiled, _ string) { p.write("docs/page.md", "") }, 2, ""},
		"a new source":   {func(p compiled, _ string) { p.write("sandbox/word/new.go", "package word") }, 2, "compiled from other sources"},
		"another source": {func(p compiled, _ string) { p.write("sandbox/word/suffix.go", `package word; var Suffix = ""`) }, 2, "compiled from other sources"},
		"a file less":    {func(p compiled, _ string) { p.remove("sandbox/word/loud.go") }, 2, "compiled from other sources"},
		"another Go":     {func(p compiled, _ string) { p.edit("sandbox/toolchain/sandbox.sha256", " go1", " go0") }, 2, "by another Go"},
		"no record":      {func(p compiled, _ string) { p.remove("sandbox/toolchain/sandbox.sha256") }, 2, "compiled from other sources"},
		"truncated":      {func(_ compiled, archive string) { truncate(t, archive) }, 2, "its SHA-256 is not the recorded one"},
		"other content": {func(p compiled, archive string) {
			p.write("bin/other/sandbox", "#!/bin/sh\necho other")
			p.pack("bin/other", archive)
		}, 2, "its SHA-256 is not the recorded one"},
		"no program":              {func(p compiled, archive string) { p.write("bin/other/etcd", ""); p.pack("bin/other", archive) }, 2, "Not found in archive"},
		"no file":                 {func(_ compiled, archive string) { require.NoError(t, os.Remove(archive)) }, 2, "404"},
		"a server hangs at once":  {func(compiled, string) {}, 0, "Operation too slow"},
		"a server hangs half-way": {func(compiled, string) {}, 1, "Operation too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newCompiled(t)
			archive := filepath.Join(t.TempDir(), "archive.tar.gz")
			p.record(archive)
			test.change(p, archive)
			if test.halves < 2 {
				t.Setenv("PATIENCE", "1")
			}

			output, err := p.compileFrom(serve(t, archive, test.halves))
			require.NoError(t, err, output)
			assert.Equal(t, "one", p.run())
			if test.said == "" {
				assert.Contains(t, output, "sandbox: taken from http://")
			} else {
				assert.Contains(t, output, test.said)
				assert.NotContains(t, output, "sandbox: taken")
			}
			output, err = p.compileFrom("nowhere")
			require.NoError(t, err)
			assert.Empty(t, output, "nothing has changed since")
		})
	}
}

// TestRecordTime: a command that succeeds leaves its time, and each ends as it would by itself.
func TestRecordTime(t *testing.T) {
	p := compiled{t, t.TempDir()}
	p.copyScript("record-time.sh")
	t.Setenv("MAKEFLAGS", "")
	run := func(name string, command ...string) int {
		timed := exec.Command(filepath.Join(p.dir, "scripts", "record-time.sh"), append([]string{name}, command...)...)
		_ = timed.Run()
		return timed.ProcessState.ExitCode()
	}
	assert.Equal(t, 3, run("make test, warm", "sh", "-c", "exit 3"))
	assert.NoFileExists(t, filepath.Join(p.dir, ".sandbox", "times"))
	assert.Zero(t, run("make test, cold", "sh", "-c", "exit 0"))
	assert.Zero(t, run("make test, warm", "true"))
	t.Setenv("MAKEFLAGS", "n")
	assert.Zero(t, run("make -n test", "true"))
	times, err := os.ReadFile(filepath.Join(p.dir, ".sandbox", "times"))
	require.NoError(t, err)
	assert.Regexp(t, `^make test, cold\t\d+\nmake test, warm\t\d+\n$`, string(times))
}

// serve returns the URL of a file on a server that sends so many halves of it.
func serve(t *testing.T, file string, halves int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if halves == 2 {
			http.ServeFile(w, r, file)
			return
		}
		content, err := os.ReadFile(file)
		assert.NoError(t, err)
		_, _ = w.Write(content[:len(content)/2*halves])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL + "/archive.tar.gz"
}

func truncate(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(file, info.Size()/2))
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
	for _, name := range []string{"compile", "record"} {
		p.copyScript(name + "-sandbox.sh")
	}
	p.copyScript("sandbox-sources.sh")
	p.write("sandbox/go.mod", "module sandbox\n\ngo 1.26\n")
	p.write("sandbox/cmd/sandbox/main.go", `package main; import ("os"; "sandbox/word"); func main() { os.Stdout.WriteString(word.Word + word.Suffix) }`)
	p.write("sandbox/word/word.go", "//go:build !loud\n\npackage word; const Word = \"one\"")
	p.write("sandbox/word/loud.go", "//go:build loud\n\npackage word; const Word = \"ONE\"")
	p.write("sandbox/word/suffix.go", `package word; var Suffix string`)
	p.write("sandbox/word/question.go", `package word; func init() { if len(Suffix) > 1 { Suffix = "?" } }`)
	p.write("docs/index.md", "")
	return p
}

func (p compiled) copyScript(name string) {
	p.t.Helper()
	script, err := os.ReadFile(filepath.Join(repository, "scripts", name))
	require.NoError(p.t, err)
	p.write("scripts/"+name, string(script))
}

// record records the program, and packs it.
func (p compiled) record(archive string) {
	p.t.Helper()
	p.write(".gitignore", "/archived/\n/bin/\n")
	p.write("sandbox/toolchain/sandbox.sha256", "")
	p.command("git", "init", "--quiet")
	p.command("git", "add", ".")
	p.command("scripts/record-sandbox.sh", "archived/sandbox")
	p.pack("archived", archive)
}

// pack writes the files of a folder to an archive.
func (p compiled) pack(folder, archive string) {
	p.t.Helper()
	p.command("tar", "-czf", archive, "-C", folder, ".", "--transform", "s#^\\./##")
}

func (p compiled) command(name string, args ...string) {
	p.t.Helper()
	command := exec.Command(name, args...)
	command.Dir = p.dir
	output, err := command.CombinedOutput()
	require.NoError(p.t, err, "%s %v: %s", name, args, output)
}

func (p compiled) edit(path, old, replacement string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, path))
	require.NoError(p.t, err)
	require.Contains(p.t, string(text), old)
	p.write(path, strings.ReplaceAll(string(text), old, replacement))
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
	if output, err := p.compileFrom(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// compileFrom compiles the program, or takes it from an archive. It returns the output for the user.
func (p compiled) compileFrom(archive ...string) (string, error) {
	args := append([]string{"bin/program"}, archive...)
	output, err := exec.Command(filepath.Join(p.dir, "scripts", "compile-sandbox.sh"), args...).CombinedOutput()
	return string(output), err
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
