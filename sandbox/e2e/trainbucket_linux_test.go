package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/sandbox/bucket"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

// bucketFaults are what a client of Cloud Storage has to bear.
var bucketFaults = []bucket.Fault{
	{Times: 1, Status: http.StatusTooManyRequests}, {Times: 1, Status: http.StatusServiceUnavailable}, {Times: 1},
	{Times: 1, Method: http.MethodPut}, {Times: 1, Delay: time.Second},
}

// bucketInterruptions take away what a checkpoint in a bucket needs. The first two are the short form's: a
// server that starts again over its mount, and the coordinator's mount.
var bucketInterruptions = []interruption{
	killedRoles[3],
	{"gcsfuse of the nn-worker that coordinates", "nn-worker-0", "gcsfuse"},
	{"gcsfuse of an embedding parameter server", "embedding-ps-0", "gcsfuse"},
	killedRoles[4],
	{"all replicas", "", ""},
}

// TestBucket trains with PERSIA's own processes, whose checkpoints go through the real gcsfuse, one for
// each pod, to a bucket that is as strict as Cloud Storage and fails at times. It interrupts the training at
// random moments, and each time the training resumes from a checkpoint that is complete in the bucket.
func TestBucket(t *testing.T) {
	random := rand.New(rand.NewPCG(firstSeed(t), 0))
	early(t, func(t *testing.T) { testBucket(t, random) })
}

func testBucket(t *testing.T, random *rand.Rand) {
	const name = "madeup-checkpoints"
	served := bucket.New(name)
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	r := &training{dir: t.TempDir(), stacks: t.TempDir(), volume: mountBucket(t, server.URL, name), engine: config.EngineStatefulSet}
	r.create(t, strings.TrimPrefix(server.URL, "http://"))
	change(r.example["config"].(object), object{"persia:storage": []object{{
		"name": "checkpoints", "size": "1Ti", "gcsFuse": object{"bucket": name, "create": object{}, "sidecar": object{"ephemeralStorage": "1Gi"}},
	}}})
	for round := range forms(1, 6) {
		job, small := fmt.Sprintf("bucket%d", round), object{"replicas": 1}
		r.upWith(t, r.arrivingJob(t, job, 4, object{
			"nats": object{"size": 1}, "nnWorker": small, "dataloader": small, "embeddingWorker": small, "embeddingParameterServer": object{"replicas": 2},
		}))
		began := time.Now()
		last := r.trainOn(t, job)
		attempt := time.Since(began)
		for _, i := range random.Perm(forms(2, len(bucketInterruptions))) {
			for range 4 {
				served.Inject(new(bucketFaults[random.IntN(len(bucketFaults))]))
			}
			r.volume.arrive(t, job, last.batches+checkpointBatches+lostBatches, 0)
			moment := time.Duration(random.Int64N(int64(attempt)))
			time.Sleep(moment)
			last.batches = r.volume.checkpoint(job, "1").batches
			bucketInterruptions[i].interrupt(t, r, job)
			last = r.awaitResumed(t, job, last)
			assertWhole(t, served, strings.TrimPrefix(last.folder, "/checkpoints/"))
			report(t, "without %s after %.1f s, attempt %d starts from batch %d", bucketInterruptions[i].name, moment.Seconds(), last.attempt, last.batches)
		}
		r.trainOn(t, job)
	}
	_, said, err := preview(t, r.s)
	require.NoError(t, err)
	assert.Regexp(t, `CHECKPOINTS OF .*\n *bucket\d, measured in 0\.\d h +0\.\d h +\d+ min +\d+% `, said, "after interruptions")
	t.Run("recovery", func(t *testing.T) {
		nightly(t)
		r.testKept(t)
	})
}

// mountBucket mounts the bucket for the test, as another node that sees at once what is written.
func mountBucket(t *testing.T, server, name string) checkpointVolume {
	t.Helper()
	folder := t.TempDir()
	output, err := exec.Command(compile(t, toolchain.OfBuckets).Path("gcsfuse"), "--anonymous-access", "--enable-hns=false", "--implicit-dirs",
		"--metadata-cache-ttl-secs=0", "--custom-endpoint", server+"/storage/v1/", name, folder).CombinedOutput()
	require.NoError(t, err, "%s", output)
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	return checkpointVolume(folder)
}

// killBucket kills a pod's gcsfuse, as the kernel does for memory. Only another pod, once people delete this, has one.
func (r *training) killBucket(t *testing.T, pod corev1.Pod, job string) {
	t.Helper()
	running, err := process.Matching(func(p process.Process) bool {
		return strings.Contains(p.Command, "gcsfuse") && strings.Contains(p.Command, string(pod.UID))
	})
	require.NoError(t, err)
	require.Len(t, running, 1)
	require.NoError(t, syscall.Kill(running[0].PID, syscall.SIGKILL))
	r.awaitStatus(t, job, fmt.Sprintf("gcsfuse has ended, which mounted /checkpoints: delete the pod %s", pod.Name))
	r.deletePods(t, pod)
}

// assertWhole checks that the bucket has all files of a checkpoint, as many for each server as PERSIA's mark says.
func assertWhole(t *testing.T, served *bucket.Server, folder string) {
	t.Helper()
	var servers, files int
	_, counts, _ := strings.Cut(string(served.Content(folder+"/embedding_dump_done")), "num_shards:")
	_, err := fmt.Sscanf(counts, "%d\nnum_internal_shards: %d\n", &servers, &files)
	require.NoError(t, err, "%s: %q", folder, counts)
	names := []string{"dense.pt", "opt.pt"}
	for server := range servers {
		for file := range files {
			names = append(names, fmt.Sprintf("s%d/replica_%d_shard_%d.emb", server, server, file))
		}
	}
	for _, name := range names {
		assert.NotEmpty(t, served.Content(folder+"/"+name), "%s/%s", folder, name)
	}
}
