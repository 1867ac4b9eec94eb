package e2e

import (
	"crypto/sha256"
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

	"persia/sandbox/toolchain"
)

// TestArchive brings the stack dev up in a new clone whose programs all come from an archive on a server. Go
// has no source of another module there and nothing that is compiled, so nothing can be compiled. TestTake of the
// toolchain takes small programs, and damaged ones.
func TestArchive(t *testing.T) {
	nightly(t)
	t.Parallel()
	clone := copyRepository(t)
	output, err := exec.Command("git", "init", "--quiet", clone).CombinedOutput()
	require.NoError(t, err, string(output))
	archive := packToolchain(t, clone)
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(archive))))
	t.Cleanup(server.Close)
	goRoot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	environment := append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOCACHE="+t.TempDir(), "GOMODCACHE="+t.TempDir(),
		"PATH="+filepath.Join(strings.TrimSpace(string(goRoot)), "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	run := func(target string) string {
		command := exec.Command("make", "--no-print-directory", "-C", clone, target, "STACK=dev", "TOOLCHAIN="+server.URL+"/"+filepath.Base(archive))
		command.Env = environment
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
		return string(output)
	}
	t.Cleanup(func() {
		run("down")
		assertNoProcess(t, clone)
	})

	started := time.Now()
	said := run("up")
	assert.Contains(t, said, "sandbox: taken from "+server.URL)
	assert.NotContains(t, said, "not taken")
	assert.NotContains(t, said, "compiling")
	for _, name := range []string{"etcd", "kube-apiserver", "pulumi", "nats-operator"} {
		assert.Regexp(t, `(?m)^toolchain: `+name+` v\S+ taken from the archive$`, said)
	}
	report(t, "a clone, and dev up with the archive, in %s", time.Since(started).Round(time.Second))
	assert.Contains(t, run("status"), "adult-income")
}

// packToolchain writes an archive of the compiled programs, which a clone records, and returns its file.
func packToolchain(t *testing.T, clone string) string {
	t.Helper()
	modules, compiled := filepath.Join(clone, "sandbox", "toolchain"), t.TempDir()
	compile(t, toolchain.OfJobSets, toolchain.OfQueues)
	// The programs are as good as those that `make toolchain-archive` compiles, and are there.
	files, err := os.ReadDir(binDir())
	require.NoError(t, err)
	for _, file := range files {
		if name := file.Name(); name != ".lock" {
			require.NoError(t, os.Symlink(filepath.Join(binDir(), name), filepath.Join(compiled, name)))
		}
	}
	archive := filepath.Join(t.TempDir(), "programs.tar.gz")
	var said strings.Builder
	require.NoError(t, toolchain.WriteArchive(t.Context(), modules, compiled, archive, &said))
	require.Empty(t, said.String(), "it has compiled nothing")

	command, err := os.ReadFile(executable)
	require.NoError(t, err)
	sources, err := exec.Command(filepath.Join(clone, "scripts", "sandbox-sources.sh")).Output()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(modules, "sandbox.sha256"), fmt.Appendf(nil, "%x %s", sha256.Sum256(command), sources), 0o600))
	return archive
}
