package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/sandbox/bucket"
	"persia/sandbox/process"
	"persia/sandbox/toolchain"
)

const checkpointBucket = "madeup-checkpoints"

// bucketFaults are injected before each interruption of the long form.
const bucketFaults = 4

// TestBucket trains with PERSIA's own processes, whose checkpoints go through the real gcsfuse, one for
// each pod, to a bucket that is as strict as Cloud Storage. It interrupts the training at random moments of
// its checkpoints, and each time the training resumes from one that is complete in the bucket.
func TestBucket(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(firstSeed(t), 0))
	b := newBucketTraining(t)
	interruptions := forms(5, 30)
	b.upWith(t, b.bucketJob(t, (interruptions+2)*checkpointBatches))
	last := b.trainOn(t, "bucket")
	saving := b.savingTime(t, last)
	order := random.Perm(len(bucketInterruptions))
	for i := range interruptions {
		if *long {
			for range bucketFaults {
				b.buckets.Inject(randomFault(random))
			}
		}
		interruption := bucketInterruptions[order[i%len(order)]]
		if i == 0 {
			interruption = bucketInterruptions[4]
		}
		b.volume.arrive(t, "bucket", last.batches+checkpointBatches+lostBatches, 0)
		b.awaitSaving(t)
		moment := time.Duration(random.Int64N(int64(saving + saving/4)))
		time.Sleep(moment)
		last = b.volume.checkpoint("bucket", "1")
		report(t, "%d: %s, %.1f s after a checkpoint begins", i, interruption.name, moment.Seconds())
		interruption.interrupt(t, b.training, "bucket")
		b.awaitWholeResumed(t, last)
	}
	b.trainOn(t, "bucket")
}

// bucketTraining is a training whose volume is a bucket.
type bucketTraining struct {
	*training
	buckets *bucket.Server
	attempt int // the last attempt that has started
}

func newBucketTraining(t *testing.T) *bucketTraining {
	t.Helper()
	var buckets bucket.Server
	buckets.Create(checkpointBucket)
	server := httptest.NewServer(&buckets)
	t.Cleanup(server.Close)
	r := &training{dir: t.TempDir(), stacks: t.TempDir(), volume: mountBucket(t, server.URL), engine: config.EngineStatefulSet}
	r.create(t, strings.TrimPrefix(server.URL, "http://"))
	change(r.example["config"].(object), object{"persia:storage": []object{{
		"name": "checkpoints", "size": "1Ti",
		"gcsFuse": object{"bucket": checkpointBucket, "create": object{}, "sidecar": object{"cpu": "10m", "ephemeralStorage": "1Gi"}},
	}}})
	return &bucketTraining{training: r, buckets: &buckets}
}

// mountBucket mounts the bucket for the test, as another node that sees at once what is written.
func mountBucket(t *testing.T, server string) checkpointVolume {
	t.Helper()
	folder := t.TempDir()
	output, err := exec.Command(compile(t, toolchain.OfBuckets).Path("gcsfuse"), "--anonymous-access", "--enable-hns=false", "--implicit-dirs",
		"--metadata-cache-ttl-secs=0", "--custom-endpoint", server+"/storage/v1/", checkpointBucket, folder).CombinedOutput()
	require.NoError(t, err, "%s", output)
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	return checkpointVolume(folder)
}

// bucketJob returns a job with so many batches, and a checkpoint after every checkpointBatches.
func (b *bucketTraining) bucketJob(t *testing.T, batches int) object {
	t.Helper()
	small := object{"replicas": 1}
	job := b.arrivingJob(t, "bucket", 4, object{
		"nats": object{"size": 1}, "nnWorker": small, "dataloader": small, "embeddingWorker": small, "embeddingParameterServer": object{"replicas": 2},
	})
	for _, variable := range job["env"].([]object) {
		switch variable["name"] {
		case "CLICKS_BATCHES":
			variable["value"] = strconv.Itoa(batches)
		case "CLICKS_CHECKPOINTS":
			variable["value"] = strconv.Itoa(batches / checkpointBatches)
		case "PERSIA_LOST_SECONDS":
			variable["value"] = "15"
		}
	}
	return job
}

var bucketInterruptions = []interruption{
	{"the nn-worker that coordinates is replaced", "", func(t *testing.T, r *training, job string) {
		r.deletePods(t, r.pod(t, job+"-nn-worker-0"))
	}},
	{"an embedding parameter server is killed", "", func(t *testing.T, r *training, job string) {
		r.killProcess(t, job+"-embedding-ps-1", "/persia-embedding-parameter-server")
	}},
	{"all replicas are replaced", "", func(t *testing.T, r *training, job string) {
		r.deletePods(t, r.pods("persia", "persia_job="+job+",app.kubernetes.io/name in (nn-worker,dataloader,embedding-worker,embedding-ps)")...)
	}},
	{"the nn-worker's script is killed", "", func(t *testing.T, r *training, job string) {
		r.killProcess(t, job+"-nn-worker-0", "-u /opt/training/train.py")
	}},
	{"gcsfuse of an embedding parameter server is killed", "", func(t *testing.T, r *training, job string) {
		pod := r.pod(t, job+"-embedding-ps-0")
		running, err := process.Matching(func(p process.Process) bool {
			return strings.Contains(p.Command, "gcsfuse") && strings.Contains(p.Command, string(pod.UID))
		})
		require.NoError(t, err)
		require.NotEmpty(t, running)
		for _, p := range running {
			require.NoError(t, syscall.Kill(p.PID, syscall.SIGKILL))
		}
		r.awaitStatus(t, job, "gcsfuse has ended, which mounted /checkpoints")
		r.deletePods(t, pod)
	}},
}

// randomFault returns a fault of the bucket that a client has to bear.
func randomFault(random *rand.Rand) *bucket.Fault {
	fault := []bucket.Fault{
		{Status: http.StatusTooManyRequests}, {Status: http.StatusServiceUnavailable}, {}, {Method: http.MethodPut}, {Delay: time.Second},
	}[random.IntN(5)]
	fault.Times = 1 + random.IntN(3)
	return &fault
}

// savingTime returns how long a checkpoint took from its first file to its last.
func (b *bucketTraining) savingTime(t *testing.T, saved checkpoint) time.Duration {
	t.Helper()
	first, err := os.Stat(filepath.Join(saved.folder, "dense.pt"))
	require.NoError(t, err)
	last, err := os.Stat(filepath.Join(saved.folder, "opt.pt"))
	require.NoError(t, err)
	return last.ModTime().Sub(first.ModTime())
}

// awaitSaving waits until the attempt has begun to save a checkpoint.
func (b *bucketTraining) awaitSaving(t *testing.T) {
	t.Helper()
	b.awaitTraining(t, "bucket", func() bool {
		b.attempt = max(b.attempt, b.started("bucket").attempt)
		begun, _ := filepath.Glob(filepath.Join(string(b.volume), "bucket", "1", fmt.Sprintf("attempt-%d", b.attempt), "batch-*"))
		return len(begun) > 0
	}, "a checkpoint of attempt %d begins: %s", b.attempt, &words{b.training, "persia", "bucket-nn-worker-0"})
}

// started returns the last attempt that the coordinator has started, with its checkpoint.
func (b *bucketTraining) started(job string) (started checkpoint) {
	for _, match := range attemptStarts.FindAllStringSubmatch(b.logs("persia", job+"-nn-worker-0"), -1) {
		started = checkpoint{folder: match[2]}
		started.attempt, _ = strconv.Atoi(match[1])
	}
	return started
}

// awaitWholeResumed waits for another attempt, and checks that the checkpoint that it starts from is no
// older than the last one, and complete: it has the files of each server that PERSIA's mark counts.
func (b *bucketTraining) awaitWholeResumed(t *testing.T, last checkpoint) {
	t.Helper()
	var now checkpoint
	b.awaitTraining(t, "bucket", func() bool {
		now = b.started("bucket")
		return now.attempt > b.attempt
	}, "an attempt after %d: %s", b.attempt, &words{b.training, "persia", "bucket-nn-worker-0"})
	b.attempt = now.attempt
	match := checkpointFolder.FindStringSubmatch(now.folder)
	require.NotNil(t, match, "the checkpoint that it starts from: %s", now.folder)
	batches, _ := strconv.Atoi(match[2])
	assert.GreaterOrEqual(t, batches, last.batches)
	folder := strings.TrimPrefix(now.folder, "/checkpoints/")
	mark, _ := b.buckets.Content(checkpointBucket, folder+"/embedding_dump_done")
	counts := regexp.MustCompile(`(?s)num_shards: (\d+)\nnum_internal_shards: (\d+)\n`).FindSubmatch(mark)
	require.NotNil(t, counts, "the mark of %s: %q", folder, mark)
	servers, _ := strconv.Atoi(string(counts[1]))
	files, _ := strconv.Atoi(string(counts[2]))
	names := []string{"dense.pt", "opt.pt"}
	for server := range servers {
		for file := range files {
			names = append(names, fmt.Sprintf("s%d/replica_%d_shard_%d.emb", server, server, file))
		}
	}
	for _, name := range names {
		content, _ := b.buckets.Content(checkpointBucket, folder+"/"+name)
		assert.NotEmpty(t, content, "%s/%s", folder, name)
	}
	report(t, "attempt %d starts from %s, whose %d files are in the bucket", now.attempt, folder, len(names))
}
