package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArchive reads an archive as containerd does.
func TestArchive(t *testing.T) {
	source := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(source, []byte("#!/bin/sh\n"), 0o600))
	made := image{
		names:       []string{"docker.io/library/example:1"},
		layers:      []layer{{"usr/bin/program": program(source), "bin": symlink("usr/bin")}, {"etc/motd": text("hello\n")}},
		environment: searchPath,
	}
	entries := contents(t, written(t, made))

	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	require.NoError(t, json.Unmarshal(entries["manifest.json"], &manifest))
	require.Len(t, manifest, 1)
	assert.Equal(t, made.names, manifest[0].RepoTags)
	var config struct {
		Config struct{ Env []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	require.NoError(t, json.Unmarshal(entries[manifest[0].Config], &config))
	assert.Equal(t, searchPath, config.Config.Env)
	require.Len(t, manifest[0].Layers, 2)
	for i, name := range manifest[0].Layers {
		sum := sha256.Sum256(entries[name])
		assert.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), config.RootFS.DiffIDs[i])
	}
	first := headers(t, entries[manifest[0].Layers[0]])
	assert.Equal(t, []string{"bin", "usr/", "usr/bin/", "usr/bin/program"}, names(first), "parents come first")
	assert.Equal(t, "usr/bin", first[0].Linkname)
	assert.EqualValues(t, 0o755, first[3].Mode)

	require.NoError(t, os.Chtimes(source, time.Now(), time.Now().Add(-time.Hour)))
	assert.Equal(t, written(t, made), written(t, made), "the same files make the same image")
}

func TestParseLdd(t *testing.T) {
	assert.Equal(t, []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}, parseLdd(
		"/bin/sh:\n\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fe1)\n"+
			"\tlibtk8.6.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007fe2)\n/usr/bin/static:\n\tnot a dynamic executable\n"))
}

// TestStaticProgramsNeedNothing: ldd ends with failure for them.
func TestStaticProgramsNeedNothing(t *testing.T) {
	static := filepath.Join(t.TempDir(), "static")
	require.NoError(t, os.WriteFile(static, []byte("no program at all"), 0o600))
	files, err := libraries(t.Context(), []string{static}, "")
	require.NoError(t, err)
	assert.Empty(t, files)
}

// TestSystemRuns starts a shell in nothing but the files of an image.
func TestSystemRuns(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may change its root directory")
	}
	files, err := debian(t.Context(), []string{"bash", "sh", "uname", "grep"}, nil, "")
	require.NoError(t, err)
	root := t.TempDir()
	var layerTar bytes.Buffer
	require.NoError(t, files.writeTo(&layerTar))
	extract := exec.Command("tar", "-x", "-C", root)
	extract.Stdin = &layerTar
	require.NoError(t, extract.Run())
	shell := exec.Command("chroot", root, "/bin/bash", "-c", "uname | grep Linux && [[ ! -e /home ]]")
	shell.Env = searchPath
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func written(t *testing.T, i image) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, i.write(name))
	archive, err := os.ReadFile(name)
	require.NoError(t, err)
	return archive
}

func contents(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	entries := map[string][]byte{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return entries
		}
		require.NoError(t, err)
		entries[header.Name], err = io.ReadAll(reader)
		require.NoError(t, err)
	}
}

func headers(t *testing.T, archive []byte) []*tar.Header {
	t.Helper()
	var all []*tar.Header
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, header)
	}
}

func names(headers []*tar.Header) []string {
	var all []string
	for _, header := range headers {
		all = append(all, header.Name)
	}
	return all
}
