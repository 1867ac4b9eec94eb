package workflows

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRelease makes the archive of one platform twice, of the small program alone.
func TestRelease(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	name := fmt.Sprintf("persia_1.2.3-trial_%s_%s", runtime.GOOS, runtime.GOARCH)
	dist := t.TempDir()
	release := func(version string) (string, error) {
		command := exec.Command(filepath.Join(repository, "scripts", "release.sh"), version)
		command.Env = append(os.Environ(), "PLATFORMS="+platform, "PROGRAMS=preview-comment", "DIST="+dist, "GITHUB_REF_TYPE=")
		output, err := command.CombinedOutput()
		return string(output), err
	}

	var archives, bills [2][]byte
	for i := range archives {
		output, err := release("v1.2.3-trial")
		require.NoError(t, err, output)
		archives[i], err = os.ReadFile(filepath.Join(dist, name+".tar.gz"))
		require.NoError(t, err)
		bills[i], err = os.ReadFile(filepath.Join(dist, name+".cdx.json"))
		require.NoError(t, err)
	}
	assert.Equal(t, string(bills[0]), string(bills[1]))
	assert.Equal(t, sha256.Sum256(archives[0]), sha256.Sum256(archives[1]), "the same commit makes the same bytes")

	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%x  %[3]s.cdx.json\n%[2]x  %[3]s.tar.gz\n", sha256.Sum256(bills[0]), sha256.Sum256(archives[0]), name), string(sums))
	assertBill(t, bills[0])
	notes, err := os.ReadFile(filepath.Join(dist, "NOTES.md"))
	require.NoError(t, err)
	assert.Contains(t, string(notes), "### Added")
	assert.Equal(t, []string{
		name + "/", name + "/LICENSE", name + "/Pulumi.yaml", name + "/bin/", name + "/bin/preview-comment",
	}, entries(t, filepath.Join(dist, name+".tar.gz")))

	command := exec.Command("tar", "-xzOf", filepath.Join(dist, name+".tar.gz"), name+"/Pulumi.yaml")
	project, err := command.Output()
	require.NoError(t, err)
	assert.Contains(t, string(project), "\n    binary: bin/persia\n", "Pulumi runs the released program")
	assert.NotContains(t, string(project), "buildTarget:")

	output, err := release("1.2")
	require.Error(t, err)
	assert.Contains(t, output, "1.2 is no version: write one like v1.2.3")
}

// assertBill looks for what Go says of the program in a bill of materials.
func assertBill(t *testing.T, bill []byte) {
	t.Helper()
	var bom struct {
		Metadata struct {
			Component struct{ Name, Version string } `json:"component"`
		} `json:"metadata"`
		Components []struct{ PURL string } `json:"components"`
	}
	require.NoError(t, json.Unmarshal(bill, &bom))
	assert.Equal(t, "persia 1.2.3-trial", bom.Metadata.Component.Name+" "+bom.Metadata.Component.Version)
	if assert.Len(t, bom.Components, 1, "preview-comment needs no module") {
		assert.Equal(t, "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"), bom.Components[0].PURL)
	}
}

// entries are the names in an archive.
func entries(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	var names []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, header.Name)
	}
}
