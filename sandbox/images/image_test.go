package images

import (
	"archive/tar"
	"io"
	"os"
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
	left := testkit.Must(os.ReadDir(dir))(t)
	assert.Empty(t, left)
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
