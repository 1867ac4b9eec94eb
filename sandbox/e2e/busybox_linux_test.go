package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeBusybox writes an archive of an image with Debian's static busybox, a link to it
// for each of its commands, and testdata/fetch.
func writeBusybox(t *testing.T, path string) {
	t.Helper()
	const program = "/bin/busybox"
	executable, err := os.ReadFile(program)
	require.NoError(t, err, "install the package busybox-static, as scripts/install-node.sh does")
	commands, err := exec.Command(program, "--list").Output()
	require.NoError(t, err)

	fetch := filepath.Join(t.TempDir(), "fetch")
	build := exec.Command("go", "build", "-o", fetch, "./testdata/fetch")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	fetcher, err := os.ReadFile(fetch)
	require.NoError(t, err)
	entries := []tarEntry{{name: "bin/busybox", content: executable}, {name: "bin/fetch", content: fetcher}}
	for _, command := range strings.Fields(string(commands)) {
		if command != "busybox" {
			entries = append(entries, tarEntry{name: "bin/" + command, link: "busybox"})
		}
	}
	layer := tarball(t, entries)
	config := toJSON(t, object{
		"architecture": "amd64", "os": "linux",
		"config": object{"Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	manifest := toJSON(t, []object{{"Config": "config.json", "RepoTags": []string{busyboxImage}, "Layers": []string{"layer.tar"}}})
	archive := tarball(t, []tarEntry{
		{name: "config.json", content: config}, {name: "layer.tar", content: layer}, {name: "manifest.json", content: manifest},
	})
	require.NoError(t, os.WriteFile(path, archive, 0o644))
}

// tarEntry is a file that all may run, or a symbolic link.
type tarEntry struct {
	name, link string
	content    []byte
}

func tarball(t *testing.T, entries []tarEntry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, entry := range entries {
		header := &tar.Header{Name: entry.name, Mode: 0o755, Size: int64(len(entry.content))}
		if entry.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, entry.link
		}
		require.NoError(t, writer.WriteHeader(header))
		_, err := writer.Write(entry.content)
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	return buffer.Bytes()
}

func toJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}
