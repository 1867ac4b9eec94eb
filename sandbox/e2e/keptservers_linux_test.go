package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeptServers disturbs trainings of processes on this machine: the project's launchers around PERSIA's own programs.
func TestKeptServers(t *testing.T) {
	t.Parallel()
	_, archives := trainingImages(t)
	root, err := filepath.Abs(repository)
	require.NoError(t, err)
	nats, runs, seed := filepath.Join(binDir(), "nats-server"), fmt.Sprint(forms(1, 10)), fmt.Sprint(firstSeed(t))
	for _, scenario := range []string{"Adam(lr=0.02)", "Adagrad(lr=0.1)", "causes", "frozen", "numbers"}[:forms(1, 5)] {
		t.Run(scenario, func(t *testing.T) {
			folder := t.TempDir()
			// The launchers must not see the mounts of buckets that other tests break.
			output, err := exec.Command("unshare", "--mount", "sh", "-c", `umount --lazy --all --types fuse.gcsfuse,fuse; exec "$@"`, "sh",
				"python3", "testdata/keptservers.py", folder, root, archives, nats, scenario, runs, seed).CombinedOutput()
			t.Logf("%s", output)
			if err != nil {
				logFiles(t, filepath.Join(folder, "*", "*.log"))
			}
			require.NoError(t, err)
		})
	}
}
