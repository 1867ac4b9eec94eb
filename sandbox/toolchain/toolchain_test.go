package toolchain

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
	"persia/sandbox/process"
)

// small is a tool of a module that is required in a version, like the tools of the archive.
var small = tool{
	Name: "small", Dir: "small", Module: "example.com/small", Package: "example.com/small",
	Variables: []variable{{"main.version", "{version}"}},
}

// smallRoot writes the modules of small, and returns the module root.
func smallRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "small", "go.mod"),
		"module example.com/tools\n\ngo 1.26.0\n\ntool example.com/small\n\nrequire example.com/small v1.2.3\n\nreplace example.com/small => ./source\n")
	write(t, filepath.Join(root, "small", "go.sum"), "")
	write(t, filepath.Join(root, "small", "source", "go.mod"), "module example.com/small\n\ngo 1.26.0\n")
	write(t, filepath.Join(root, "small", "source", "main.go"),
		"package main\n\nvar version = \"unset\"\n\nfunc main() { println(\"small\", version) }\n")
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
	for name, test := range map[string]struct {
		change func(t *testing.T, b *builder, changed *tool)
		want   []string
	}{
		"nothing changed":            {func(*testing.T, *builder, *tool) {}, nil},
		"another requirement":        {change: appendTo("small/go.mod"), want: []string{"small"}},
		"another Go":                 {func(_ *testing.T, b *builder, _ *tool) { b.goVersion = "go1.99" }, []string{"small"}},
		"another package":            {func(_ *testing.T, _ *builder, changed *tool) { changed.Package += "/v2" }, []string{"small"}},
		"another source of our own":  {func(_ *testing.T, _ *builder, changed *tool) { changed.Package = "./" }, []string{"small"}},
		"another linker variable":    {func(_ *testing.T, _ *builder, changed *tool) { changed.Variables = nil }, []string{"small"}},
		"the binary is gone":         {removeBinary("small"), []string{"small"}},
		"the stamp is gone":          {removeBinary(".small.stamp"), []string{"small"}},
		"the binary is an empty one": {func(t *testing.T, b *builder, _ *tool) { write(t, filepath.Join(b.binDir, "small"), "") }, []string{"small"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, small, smallRoot(t))
			stamp := testkit.Must(b.stamp(small))(t)
			write(t, filepath.Join(b.binDir, "small"), "binary")
			write(t, filepath.Join(b.binDir, ".small.stamp"), stamp)

			changed := small
			test.change(t, b, &changed)
			assert.Equal(t, test.want, testkit.Must(b.stale([]tool{changed}))(t))
		})
	}
}

func appendTo(file string) func(*testing.T, *builder, *tool) {
	return func(t *testing.T, b *builder, _ *tool) {
		path := filepath.Join(b.moduleRoot, file)
		write(t, path, testkit.Read(t, path)+"// changed\n")
	}
}

func removeBinary(name string) func(*testing.T, *builder, *tool) {
	return func(t *testing.T, b *builder, _ *tool) { require.NoError(t, os.Remove(filepath.Join(b.binDir, name))) }
}

func TestAFailedCompilationLeavesNoBinary(t *testing.T) {
	root := smallRoot(t)
	write(t, filepath.Join(root, "small", "source", "main.go"), "package main\n\nfunc main() { undefined() }\n")
	b := builderOf(t, small, root)

	require.ErrorContains(t, b.compile(t.Context(), small, "v1.2.3"), "undefined: undefined", "the compiler's own words")
	assert.Equal(t, []string{"small"}, testkit.Must(b.stale([]tool{small}))(t))
	assert.NoFileExists(t, filepath.Join(b.binDir, "small"))
}

func TestEveryToolIsPinned(t *testing.T) {
	b := testkit.Must(newBuilder(t.Context(), ".", t.TempDir()))(t)
	for _, tool := range all {
		t.Run(tool.Name, func(t *testing.T) {
			gomod := testkit.Read(t, filepath.Join(tool.Dir, "go.mod"))
			if !tool.own() {
				assert.Contains(t, gomod, tool.Package, "a tool of the module")
			}
			assert.Contains(t, gomod, tool.Module+" "+testkit.Must(b.version(t.Context(), tool))(t))
		})
	}
}

// named returns the tool with a name.
func named(name string) tool {
	return all[slices.IndexFunc(all, func(t tool) bool { return t.Name == name })]
}

// archiveOf writes an archive of the tool small, and returns the module root and the file.
func archiveOf(t *testing.T) (root, file string) {
	t.Helper()
	root = smallRoot(t)
	file = filepath.Join(t.TempDir(), "archives", "programs.tar.gz")
	var progress bytes.Buffer
	require.NoError(t, builderOf(t, small, root).writeArchive(t.Context(), []tool{small}, file, &progress), &progress)
	return root, file
}

// takeSmall takes small from an archive and compiles it if that is not possible. It returns what the user reads.
func takeSmall(t *testing.T, b *builder, archive string) string {
	t.Helper()
	var progress bytes.Buffer
	require.NoError(t, b.takeFrom(t.Context(), []tool{small}, archive, &progress))
	require.NoError(t, b.build(t.Context(), []tool{small}, &progress))
	output := testkit.Must(exec.Command(filepath.Join(b.binDir, "small")).CombinedOutput())(t)
	assert.Equal(t, "small v1.2.3\n", string(output))
	left := testkit.Must(filepath.Glob(filepath.Join(b.binDir, ".small*")))(t)
	assert.Equal(t, []string{stampFile(filepath.Join(b.binDir, "small"))}, left)
	return progress.String()
}

// TestTake takes a program from a file and from a server, once.
func TestTake(t *testing.T) {
	// Neither the user's flags nor a workspace reach the build.
	t.Setenv("GOFLAGS", "-mod=mod -tags=nonsense")
	t.Setenv("GOWORK", filepath.Join(t.TempDir(), "go.work"))
	root, file := archiveOf(t)
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(file))))
	defer server.Close()
	for name, archive := range map[string]string{"a file": file, "a URL": server.URL + "/programs.tar.gz"} {
		t.Run(name, func(t *testing.T) {
			b := builderOf(t, small, root)
			assert.Equal(t, "toolchain: 1 programs taken from the archive\n", takeSmall(t, b, archive))
			assert.Empty(t, takeSmall(t, b, "nowhere"), "nothing is missing any more")
		})
	}
}

// TestTakeNothing: what is not exactly the recorded program is said, not used, and compiled.
func TestTakeNothing(t *testing.T) {
	original, archive := archiveOf(t)
	text := testkit.Must(os.ReadFile(archive))(t)
	served := func(handler http.HandlerFunc) string {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL
	}
	damaged := bytes.Clone(text)
	damaged[len(text)/2] ^= 1
	linked, unread := filepath.Join(t.TempDir(), "linked.tar.gz"), "unread.tar.gz"
	const link = `tar -xzf "$1" -C "$2" && cd "$2" && mv small there && ln -s "$2/there" small && tar -czf "$3" small`
	require.NoError(t, shell(t.Context(), link, archive, t.TempDir(), linked))
	for name, test := range map[string]struct {
		archive string
		change  func(*record)
		said    string
	}{
		"truncated":        {served(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text[:len(text)/2]) }), nil, "unexpected end of file"},
		"damaged":          {served(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(damaged) }), nil, "nothing is taken"},
		"no such file":     {"no.tar.gz", nil, "No such file"},
		"no such page":     {served(http.NotFound), nil, "404"},
		"hangs":            {served(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), nil, "Operation too slow"},
		"a link":           {linked, nil, "small is no file"},
		"another checksum": {archive, func(r *record) { r.Programs[0].SHA256 = strings.Repeat("0", 64) }, "the SHA-256 of small is"},
		"other sources":    {unread, func(r *record) { r.Programs[0].Stamp = "" }, "from other sources"},
		"another program":  {unread, func(r *record) { r.Programs[0].Name = "other" }, "from other sources"},
		"one program less": {unread, func(r *record) { r.Programs = nil }, "from other sources"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.CopyFS(root, os.DirFS(original)))
			b := builderOf(t, small, root)
			if name == "hangs" {
				b.patience = time.Second // a slow server of another case is waited for
			}
			if test.change != nil {
				recorded := testkit.Must(readRecord(root))(t)
				test.change(&recorded)
				require.NoError(t, recorded.write(root))
			}
			said := takeSmall(t, b, test.archive)
			assert.Contains(t, said, test.said)
			if test.archive == unread {
				assert.NotContains(t, said, "No such file", "an archive that does not fit is not read")
			}
			assert.Contains(t, said, "small v1.2.3 compiling")
			assert.NotContains(t, said, "programs taken")
		})
	}
}

func TestTakeIsInterrupted(t *testing.T) {
	root, file := archiveOf(t)
	b := builderOf(t, small, root)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	go func() {
		<-asked
		cancel()
	}()
	require.ErrorIs(t, b.takeFrom(ctx, []tool{small}, server.URL+"/"+filepath.Base(file), t.Output()), context.Canceled)
}

// TestReproducible: the same sources make the same bytes in another folder, and the same archive.
func TestReproducible(t *testing.T) {
	root, file := archiveOf(t)
	otherRoot, otherFile := archiveOf(t)
	recorded := testkit.Must(readRecord(root))(t)
	assert.Equal(t, recorded, testkit.Must(readRecord(otherRoot))(t))
	sum := testkit.Must(process.Digest(file))(t)
	assert.Equal(t, sum, testkit.Must(process.Digest(otherFile))(t))
}

// TestRecord: what archive.json records is what the sandbox compiles now, and a fresh compilation of a
// small program makes the recorded bytes. Users compile what is not recorded.
func TestRecord(t *testing.T) {
	const command = "make toolchain-archive writes archive.json"
	b := testkit.Must(newBuilder(t.Context(), ".", t.TempDir()))(t)
	recorded := testkit.Must(readRecord(b.moduleRoot))(t)
	if recorded.Platform != platform {
		t.Logf("recorded for %s: nothing is compared on %s", recorded.Platform, platform)
		return
	}
	here := b.goVersion
	b.goVersion = recorded.Go
	assert.True(t, testkit.Must(recorded.matches(archived, b))(t), command)
	for i, p := range recorded.Programs {
		assert.Equal(t, testkit.Must(b.version(t.Context(), archived[i]))(t), p.Version, command)
	}
	if recorded.Go != here {
		t.Logf("recorded for %s: nothing is compiled by %s", recorded.Go, here)
		return
	}
	require.NoError(t, b.build(t.Context(), []tool{named("nats-server")}, t.Output()))
	again := testkit.Must(b.record(t.Context(), []tool{named("nats-server")}))(t)
	assert.Contains(t, recorded.Programs, again.Programs[0], "compiled by %s; %s", here, command)
}
