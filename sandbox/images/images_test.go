package images

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

func TestParseLdd(t *testing.T) {
	assert.Equal(t, []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}, parseLdd(
		"/bin/sh:\n\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fe1)\n"+
			"\tlibtk8.6.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007fe2)\n/usr/bin/static:\n\tnot a dynamic executable\n"))
}

// TestStaticProgramsNeedNothing covers programs for which ldd fails.
func TestStaticProgramsNeedNothing(t *testing.T) {
	static := filepath.Join(t.TempDir(), "static")
	require.NoError(t, os.WriteFile(static, []byte("no program at all"), 0o600))
	assert.Empty(t, testkit.Must(libraries(t.Context(), []string{static}, ""))(t))
}

// TestSystemRuns runs a shell with only the files of an image.
func TestSystemRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Skip(t, "only root may change its root directory")
	}
	files := testkit.Must(debian(t.Context(), []string{"bash", "sh", "uname", "grep"}, nil, ""))(t)
	root := t.TempDir()
	var layerTar bytes.Buffer
	require.NoError(t, files.WriteTar(&layerTar))
	extract := exec.Command("tar", "-x", "-C", root)
	extract.Stdin = &layerTar
	require.NoError(t, extract.Run())
	shell := exec.Command("chroot", root, "/bin/bash", "-c", "uname | grep Linux && [[ ! -e /home ]]")
	shell.Env = searchPath
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// example returns an image with two names, and the path of the program in it.
func example(t *testing.T) (Image, string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(source, []byte("#!/bin/sh\n"), 0o600))
	return Image{
		Names:       []string{"docker.io/library/example:1", "docker.io/library/example:latest"},
		Layers:      []Layer{{"usr/bin/program": Program(source), "usr/bin": Directory(0o755), "bin": Symlink("usr/bin")}, {"etc/motd": Text("hello\n")}},
		Environment: []string{"PATH=/usr/bin"},
		Entrypoint:  []string{"/usr/bin/program"},
		User:        "65535:65535",
	}, source
}

func TestWriteImage(t *testing.T) {
	image, _ := example(t)
	path := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, image.Write(path))
	for _, reference := range image.Names {
		tag := testkit.Must(name.NewTag(reference))(t)
		read := testkit.Must(tarball.ImageFromPath(path, &tag))(t)
		require.NoError(t, validate.Image(read), "all digests are right")
		config := testkit.Must(read.ConfigFile())(t)
		assert.Equal(t, "linux/amd64", config.Platform().String())
		assert.Equal(t, v1.Config{Env: image.Environment, Entrypoint: image.Entrypoint, User: image.User, WorkingDir: "/"}, config.Config)
		layers := testkit.Must(read.Layers())(t)
		require.Len(t, layers, 2)
		files := headers(t, layers[0])
		require.Len(t, files, 3)
		for i, want := range []string{"bin", "usr/bin/", "usr/bin/program"} {
			assert.Equal(t, want, files[i].Name, "directories come first")
		}
		assert.Equal(t, "usr/bin", files[0].Linkname)
		assert.EqualValues(t, 0o755, files[2].Mode)
		assert.EqualValues(t, len("#!/bin/sh\n"), files[2].Size)
	}
}

// TestWriteIsReproducible writes often enough to meet another order of a map.
func TestWriteIsReproducible(t *testing.T) {
	image, source := example(t)
	path := filepath.Join(t.TempDir(), "image.tar")
	var first []byte
	for i := range 20 {
		require.NoError(t, os.Chtimes(source, time.Now(), time.Now().Add(time.Duration(-i)*time.Hour)))
		require.NoError(t, image.Write(path))
		written := testkit.Must(os.ReadFile(path))(t)
		if first == nil {
			first = written
		}
		require.Equal(t, first, written)
	}
}

func TestWriteLeavesNothingAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	image := Image{Names: []string{"docker.io/library/example:1"}, Layers: []Layer{{"program": Program(filepath.Join(dir, "missing"))}}}
	require.ErrorContains(t, image.Write(filepath.Join(dir, "image.tar")), "program: open "+dir)
	assert.Empty(t, testkit.Must(os.ReadDir(dir))(t))
}

func headers(t *testing.T, layer v1.Layer) []*tar.Header {
	t.Helper()
	content := testkit.Must(layer.Uncompressed())(t)
	defer func() { _ = content.Close() }()
	var all []*tar.Header
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, header)
	}
}
