package images

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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
	files := testkit.Must(libraries(t.Context(), []string{static}, ""))(t)
	assert.Empty(t, files)
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
