package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/renameio/v2"
	"github.com/stretchr/testify/require"
)

// checkpointVolume is the volume of the trainings, a folder of the host.
type checkpointVolume string

// inPod returns the path in the pods of a file in the volume.
func (v checkpointVolume) inPod(path string) string {
	return "/checkpoints" + strings.TrimPrefix(path, string(v))
}

// script puts a script of testdata into the volume of the jobs, and returns its path in their pods.
func (v checkpointVolume) script(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "training", name))
	require.NoError(t, err)
	return v.put(t, "scripts/"+name, string(text))
}

// put writes a file of the volume, at once, and returns its path in the pods.
func (v checkpointVolume) put(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(string(v), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, renameio.WriteFile(file, []byte(content), 0o644))
	return v.inPod(file)
}

// arrive lets the first batches of a job be there, and some more come slowly.
func (v checkpointVolume) arrive(t *testing.T, job string, there, coming int) {
	t.Helper()
	v.put(t, "arrived/"+job, fmt.Sprintf("%d %d\n", there, max(there, coming)))
}

// checkpoint is a complete one.
type checkpoint struct {
	folder           string
	attempt, batches int
}

var checkpointFolder = regexp.MustCompile(`/attempt-(\d+)/batch-(\d+)$`)

// checkpoint returns the newest complete one of a run in the claimed volume, which is a folder of the host.
func (v checkpointVolume) checkpoint(job, run string) checkpoint {
	marks, _ := filepath.Glob(filepath.Join(string(v), job, run, "attempt-*", "batch-*", "opt.pt"))
	var newest checkpoint
	for _, mark := range marks {
		folder := filepath.Dir(mark)
		match := checkpointFolder.FindStringSubmatch(folder)
		if _, err := os.Stat(filepath.Join(folder, "embedding_dump_done")); err != nil || match == nil {
			continue
		}
		attempt, _ := strconv.Atoi(match[1])
		batches, _ := strconv.Atoi(match[2])
		if batches > newest.batches {
			newest = checkpoint{folder, attempt, batches}
		}
	}
	return newest
}
