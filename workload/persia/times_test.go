package persia

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDefaultTimes: the times and numbers that docs/guides/jobs.md names are the defaults of the scripts,
// which all other tests shorten.
func TestDefaultTimes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guides/jobs.md")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(page)), " ")
	found := defaults(t)
	for field, c := range map[string]struct {
		want float64
		says string
	}{
		"beat_seconds":    {5, "Every replica reports to it every five seconds."},
		"lost_seconds":    {60, "after 1 minute without a report from a replica;"},
		"nats_seconds":    {30, "after 30 seconds without a connection from a replica to NATS;"},
		"gpu_seconds":     {300, "when PyTorch cannot use a GPU that the replica requested, and after 5 minutes without an answer;"},
		"stuck_seconds":   {3600, "after 1 hour in which no nn-worker reports [progress](#progress),"},
		"end_seconds":     {60, "1 minute after all nn-workers have finished, if a dataloader has not;"},
		"backoff_seconds": {10, "A failure is followed by a pause of ten seconds,"},
		"attempts":        {5, "After five failures without a new checkpoint, the job has failed,"},
		// These are in no page.
		"stop_seconds": {20, ""},
		"hang_seconds": {10, ""},
		"look_seconds": {60, ""},
		"keep":         {2, ""},
	} {
		assert.EqualValues(t, c.want, found[field], field)
		assert.True(t, strings.Contains(text, c.says), "docs/guides/jobs.md does not say: %s", c.says)
	}
}

// defaults returns the settings of a replica whose environment sets none of them.
func defaults(t *testing.T) map[string]any {
	t.Helper()
	const script = `
import json, checks, settings
given = {"PERSIA_ROLE": "dataloader", "REPLICA_INDEX": "0", "PERSIA_COORDINATOR": "127.0.0.1:1", "PERSIA_TOKEN": "", "PERSIA_IDLE_FILE": "idle", "PERSIA_STATE_DIR": "state"}
found = vars(settings.Settings(given))
found["gpu_seconds"] = checks.GPUs(given).seconds
print(json.dumps(found))
`
	command := exec.Command("python3", "-B", "-c", script)
	text, err := command.Output()
	require.NoError(t, err)
	var found map[string]any
	require.NoError(t, json.Unmarshal(text, &found))
	return found
}

// TestLaunchEvicted: a replica whose pod is evicted takes the pod's time to save, not the shorter one
// that replicas have between two attempts. Its successor takes part in the next attempt.
func TestLaunchEvicted(t *testing.T) {
	t.Parallel()
	const saves = note + `[[ $PERSIA_ATTEMPT -gt 1 ]] && exit 0; trap 'sleep 1; echo saved >>saved; exit 0' TERM; touch ready-$PERSIA_ROLE-$REPLICA_INDEX; while :; do sleep 0.05; done`
	for _, evicted := range []string{"nn-worker-0", "nn-worker-1", "dataloader-0"} {
		t.Run(evicted, func(t *testing.T) {
			t.Parallel()
			j := newTraining(t, "nn-worker=2,dataloader=1", "PERSIA_STOP_SECONDS=0.1")
			replicas := map[string]*replica{}
			for _, name := range []string{"nn-worker-0", "nn-worker-1", "dataloader-0"} {
				command := note + `[[ $PERSIA_ATTEMPT -gt 1 ]] || exec sleep 600`
				if name == evicted {
					command = saves
				}
				replicas[name] = j.start(name, command)
			}
			j.awaits("ready-" + evicted)
			assert.Zero(t, replicas[evicted].stop())
			assert.Equal(t, []string{"saved"}, j.lines("saved"))
			j.start(evicted, saves, "PERSIA_POD_UID=another")
			assert.Equal(t, "complete in attempt 2", j.becomes("complete"))
		})
	}
}
