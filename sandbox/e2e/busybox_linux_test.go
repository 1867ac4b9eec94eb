package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persia/sandbox/images/archive"
)

// writeBusybox writes the archive of an image with Debian's static busybox, a link to it
// for each of its commands, and testdata/fetch.
func writeBusybox(t *testing.T, path string) {
	t.Helper()
	const program = "/bin/busybox"
	commands, err := exec.Command(program, "--list").Output()
	require.NoError(t, err, "install the package busybox-static, as scripts/install-node.sh does")
	fetch := filepath.Join(t.TempDir(), "fetch")
	build := exec.Command("go", "build", "-o", fetch, "./testdata/fetch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	layer := archive.Layer{}
	for _, command := range strings.Fields(string(commands)) {
		layer["bin/"+command] = archive.Symlink("busybox")
	}
	layer["bin/busybox"], layer["bin/fetch"] = archive.Program(program), archive.Program(fetch)
	image := archive.Image{Names: []string{busyboxImage}, Layers: []archive.Layer{layer}, Environment: []string{"PATH=/bin"}}
	require.NoError(t, image.Write(path))
}
