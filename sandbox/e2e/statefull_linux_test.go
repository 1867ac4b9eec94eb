package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"persia/sandbox/process"
	"persia/sandbox/state"
)

// TestStateOnAFullDisk: an entry that finds no room is refused as a whole, and stored once there is room
// again. A limit on the size of the file plays the full disk.
func TestStateOnAFullDisk(t *testing.T) {
	nightly(t)
	t.Parallel()
	dir := t.TempDir()
	s := startState(t, dir)
	s.create("dev")
	s.do(http.StatusOK, "POST", "update/first", apitype.StartUpdateRequest{JournalVersion: 1}, nil)
	entry := map[string]any{"version": 1, "kind": apitype.JournalEntryKindSuccess, "sequenceID": 1, "operationID": 1, "state": made("a")}
	journal := map[string]any{"entries": []any{entry}}

	file, err := os.Stat(filepath.Join(string(state.InFolder(dir, "persia", "dev")), "state.jsonl"))
	require.NoError(t, err)
	limit := func(size uint64) {
		found, err := process.Matching(func(p process.Process) bool { return p.Command == tools.PulumiState+" --dir "+dir })
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.NoError(t, unix.Prlimit(found[0].PID, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil))
	}
	limit(uint64(file.Size()) + 50)
	s.do(http.StatusInternalServerError, "PATCH", "update/first/journalentries", journal, nil)
	s.assertHolds(0, 0)
	limit(unix.RLIM_INFINITY)
	s.do(http.StatusOK, "PATCH", "update/first/journalentries", journal, nil)
	s.assertHolds(1, 0)
}
