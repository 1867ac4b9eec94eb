package gcp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/gcp"
	"persia/workload/persia/persiav1"
	"persia/workload/queue"
)

// ran describes the jobs that run in a stack at one time, and its nodes.
type ran struct {
	// replicas are the numbers of replicas by the job.
	replicas map[string]int
	// nodes are the nodes by name.
	nodes map[string]corev1.Node
	// checkpoints are the folders for checkpoints by the job, as an nn-worker mounts them, or "".
	checkpoints map[string]string
}

// runs returns the running jobs. Storage are directories that it creates, with the contents of the
// stack's storage.
func (e *engine) runs(t *testing.T, storage string) ran {
	t.Helper()
	now := ran{map[string]int{}, e.nodes(), map[string]string{}}
	for _, has := range workloads(t, e.objects) {
		now.replicas[has.job] += has.replicas
		if has.nnWorker != nil {
			now.checkpoints[has.job] = e.mounted(t, storage, *has.nnWorker)
		}
	}
	return now
}

// workload is an object that creates pods of a job.
type workload struct {
	job      string
	replicas int
	// nnWorker describes the nn-workers. It is nil if the object creates none, or leaves them to
	// PERSIA's operator.
	nnWorker *corev1.PodSpec
}

// workloads returns the objects that create the pods of jobs.
func workloads(t *testing.T, objects map[resource.URN]inCluster) map[resource.URN]workload {
	t.Helper()
	all := map[resource.URN]workload{}
	for urn, object := range objects {
		switch urn.Type() {
		case "kubernetes:apps/v1:StatefulSet":
			set := read[appsv1.StatefulSet](t, object)
			has := workload{job: set.Spec.Template.Labels["persia_job"], replicas: int(*set.Spec.Replicas)}
			if set.Spec.Template.Labels["app.kubernetes.io/name"] == "nn-worker" {
				has.nnWorker = &set.Spec.Template.Spec
			}
			if has.job != "" {
				all[urn] = has
			}
		case "kubernetes:persia.com/v1:PersiaJob":
			job := read[persiav1.PersiaJob](t, object)
			has := workload{job: job.Name}
			for _, role := range []*persiav1.Role{&job.Spec.NNWorker.Role, job.Spec.Dataloader, job.Spec.EmbeddingWorker, job.Spec.EmbeddingParameterServer} {
				has.replicas += int(role.Replicas)
			}
			all[urn] = has
		case queue.JobSetToken:
			set := read[queue.JobSet](t, object)
			has := workload{job: set.Name}
			for _, role := range set.Spec.ReplicatedJobs {
				if set.Spec.Suspend == nil || !*set.Spec.Suspend {
					has.replicas += int(*role.Template.Spec.Completions)
				}
				if role.Name == "nn-worker" {
					has.nnWorker = &role.Template.Spec.Template.Spec
				}
			}
			all[urn] = has
		}
	}
	return all
}

// replicasOf counts the replicas of a job.
func replicasOf(all map[resource.URN]workload, job string) int {
	count := 0
	for _, has := range all {
		if has.job == job {
			count += has.replicas
		}
	}
	return count
}

// read returns an object as its type.
func read[T any](t *testing.T, object inCluster) T {
	t.Helper()
	var typed T
	text, err := json.Marshal(object.outputs.Mappable())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &typed))
	return typed
}

// mounted mounts storage as a pod has it, and returns the folder for its checkpoints.
func (e *engine) mounted(t *testing.T, storage string, pod corev1.PodSpec) string {
	t.Helper()
	root, container := t.TempDir(), pod.Containers[0]
	for _, mount := range container.VolumeMounts {
		for _, volume := range pod.Volumes {
			if volume.Name != mount.Name || volume.PersistentVolumeClaim == nil {
				continue
			}
			at := filepath.Join(root, mount.MountPath)
			require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
			require.NoError(t, os.Symlink(e.directory(t, storage, volume.PersistentVolumeClaim.ClaimName), at))
		}
	}
	for _, variable := range container.Env {
		if variable.Name == "PERSIA_CKPT_ROOT" {
			return filepath.Join(root, variable.Value)
		}
	}
	return ""
}

// directory returns the directory that simulates the storage of a claim.
func (e *engine) directory(t *testing.T, storage, claim string) string {
	t.Helper()
	for urn, object := range e.objects {
		if urn.Type() != "kubernetes:core/v1:PersistentVolume" {
			continue
		}
		volume := read[corev1.PersistentVolume](t, object)
		if volume.Spec.ClaimRef.Name != claim {
			continue
		}
		path := filepath.Join(storage, strings.ReplaceAll(volume.Spec.CSI.VolumeHandle, "/", "-"))
		for _, option := range volume.Spec.MountOptions {
			if folder, ok := strings.CutPrefix(option, "only-dir="); ok {
				path = filepath.Join(path, folder)
			}
		}
		require.NoError(t, os.MkdirAll(path, 0o755))
		return path
	}
	require.Fail(t, "no volume of the claim "+claim)
	return ""
}

// writeCheckpoint writes a complete checkpoint of an attempt.
func writeCheckpoint(t *testing.T, root string) {
	t.Helper()
	folder := filepath.Join(root, "attempt-1")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "s0"), 0o755))
	for name, text := range map[string]string{"dense.pt": "a model", "embedding_dump_done": "---\nnum_shards: 1\n", "opt.pt": "an optimizer", "s0/replica_0_shard_0.emb": "embeddings"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
}

// finds reports whether the coordinator's own script finds a checkpoint in a folder.
func finds(t *testing.T, root string) bool {
	t.Helper()
	const script = "import checkpoints, sys; print(checkpoints.scan(sys.argv[1]).newest() or '')"
	command := exec.CommandContext(t.Context(), "python3", "-c", script, root)
	command.Dir = "../../workload/persia"
	command.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out)) != ""
}

var (
	newestText   = regexp.MustCompile(`rains from the newest complete checkpoint in (?:folder (\S+) of )?(gs://|Filestore instance )(\S+?)(?: in (\S+?))?, or from the beginning`)
	unseenText   = regexp.MustCompile(`does not see the checkpoints in|trains from the beginning, in the run`)
	deletedText  = regexp.MustCompile(`the job (\S+) (?:is no longer in the stack file, and ends: |stops, and )this deletes its (\d+) replicas`)
	storageText  = regexp.MustCompile(`stays? (?:there|in )`)
	namedStorage = regexp.MustCompile(`(?:gs://|Filestore instance )([a-z0-9-]+)`)
	roundsText   = regexp.MustCompile(`recreates? the nodes of the pool (\S+), (\d+) at once. This takes (\d+) rounds?, about (\S+) if a round takes 10m`)
	replacedText = regexp.MustCompile(`Google Cloud deletes all nodes of the pool (\S+), and creates the pool again when they are gone: about (\S+) without nodes, if each of the two takes 10m`)
	resizedText  = regexp.MustCompile(`GKE deletes nodes of the pool (\S+): (all|\d+)`)
)

// assertHappened compares the announced effects of the last up with what it did. before has the
// jobs and nodes before the up. A job that ran had a checkpoint.
func assertHappened(t *testing.T, e *engine, storage string, before ran) {
	t.Helper()
	after := e.runs(t, storage)
	assertStays(t, e)
	for _, text := range e.effects() {
		if match := deletedText.FindStringSubmatch(text); match != nil {
			assert.Equal(t, match[2], fmt.Sprint(before.replicas[match[1]]), text)
			assert.Zero(t, after.replicas[match[1]], text)
		}
		if match := renewText.FindStringSubmatch(text); match != nil {
			assert.Equal(t, match[2], fmt.Sprint(before.replicas[match[1]]), text)
			assert.Equal(t, match[3], fmt.Sprint(after.replicas[match[1]]), text)
		}
		if match := newestText.FindStringSubmatch(text); match != nil {
			handle := match[3]
			if match[4] != "" {
				handle = strings.Join([]string{"modeInstance", match[4], match[3], "vol1"}, "-")
			}
			root, there := after.checkpoints["criteo"]
			if !there {
				root = before.checkpoints["criteo"] // the stack has no JobSet that a queue must not start
			}
			assertSameFolder(t, filepath.Join(storage, handle, match[1]), root, text)
		}
		if strings.Contains(text, "rains from the beginning, because") {
			assert.Empty(t, after.checkpoints["criteo"], text)
		}
	}
	all := strings.Join(e.effects(), "\n")
	if before.replicas["criteo"] > 0 && after.replicas["criteo"] > 0 {
		assert.Equal(t, strings.Contains(all, " at once; "), slices.ContainsFunc(e.steps, replacesNATS), "%s\n%v", all, e.steps)
	}
	for job, root := range after.checkpoints {
		had := before.checkpoints[job] != ""
		assert.Equal(t, had && !unseenText.MatchString(all), root != "" && finds(t, root), "the job %s sees its checkpoint\n%s", job, all)
	}
	assertNodes(t, e, before.nodes)
}

// length returns a time in which GKE drains or creates nodes so often, in words.
func length(rounds int) string {
	return strings.TrimSuffix((time.Duration(rounds) * config.UpgradeRoundTime).String(), "0s")
}

// nodesOf counts the nodes of a pool.
func (e *engine) nodesOf(pool string) int {
	count := 0
	for _, node := range e.nodes() {
		if node.Labels[gcp.LabelNodePool] == pool {
			count++
		}
	}
	return count
}

// replacesNATS reports whether a step replaces a NATS cluster.
func replacesNATS(s step) bool { return s.kind == "NatsCluster" && s.operation == "replace" }

// assertSameFolder holds that two paths are of one folder, which need not exist.
func assertSameFolder(t *testing.T, want, got, text string) {
	t.Helper()
	require.NotEmpty(t, got, text)
	require.NoError(t, os.MkdirAll(got, 0o755))
	wanted, err := filepath.EvalSymlinks(want)
	assert.NoError(t, err, text)
	has, err := filepath.EvalSymlinks(got)
	assert.NoError(t, err, text)
	assert.Equal(t, wanted, has, text)
}

// assertStays holds that the storage exists that the effects say stays.
func assertStays(t *testing.T, e *engine) {
	t.Helper()
	for _, text := range e.effects() {
		if storageText.MatchString(text) {
			for _, match := range namedStorage.FindAllStringSubmatch(text, -1) {
				assertExists(t, e, match[1])
			}
		}
	}
}

// assertExists holds that a bucket or a Filestore instance exists, and that the up touched none.
func assertExists(t *testing.T, e *engine, name string) {
	t.Helper()
	var names []string
	for _, kind := range []string{"storage.bucket", "file.instance"} {
		all, err := e.cloud.List(kind)
		require.NoError(t, err)
		for path := range all {
			names = append(names, filepath.Base(path))
		}
	}
	assert.Contains(t, names, name)
	for _, s := range e.steps {
		if s.kind == "Bucket" || s.kind == "Instance" {
			assert.NotContains(t, []string{"delete", "replace"}, s.operation, "%v", s)
		}
	}
}

// assertNodes holds the effects against the nodes that went, and what they say of a pool against how
// its nodes went and came. Simulated time means nothing, so the times are held against the number of
// rounds.
func assertNodes(t *testing.T, e *engine, before map[string]corev1.Node) {
	t.Helper()
	all, now := strings.Join(e.effects(), "\n"), e.nodes()
	had, lost := map[string]int{}, map[string]int{}
	for name, node := range before {
		pool := node.Labels[gcp.LabelNodePool]
		had[pool]++
		if _, stays := now[name]; !stays {
			lost[pool]++
		}
	}
	for pool := range lost {
		assert.Regexp(t, `(pool `+pool+`\b)|everything in it`, all)
	}
	for _, match := range roundsText.FindAllStringSubmatch(all, -1) {
		said, pool := match[0], match[1]
		assert.Equal(t, had[pool], lost[pool], said)
		rounds := e.historyOf(pool, before).rounds
		assert.Equal(t, match[3], fmt.Sprint(len(rounds)), said)
		assert.Equal(t, match[2], fmt.Sprint(slices.Max(rounds)), said)
		assert.Equal(t, match[4], length(len(rounds)), said)
	}
	for _, match := range replacedText.FindAllStringSubmatch(all, -1) {
		said, pool := match[0], match[1]
		went := e.historyOf(pool, before)
		want := history{most: had[pool]}
		if had[pool] > 0 {
			want.rounds = []int{had[pool]}
		}
		assert.Equal(t, want, went, said)
		assert.Equal(t, had[pool], e.nodesOf(pool), said)
		assert.Equal(t, match[2], length(2), "without nodes, while they go and while others come: %s", said)
	}
	for _, match := range resizedText.FindAllStringSubmatch(all, -1) {
		count, err := strconv.Atoi(match[2])
		if err == nil {
			assert.Equal(t, count, lost[match[1]], match[0])
		} else {
			assert.Positive(t, lost[match[1]], match[0])
		}
	}
	for _, s := range e.steps {
		if s.kind == "NodePool" && (s.operation == "replace" || s.operation == "delete") && !strings.Contains(all, "everything in it") {
			pool := strings.TrimPrefix(s.name, "persia-")
			assert.Regexp(t, `Google Cloud deletes all nodes of the pool `+pool+`\b|the pool `+pool+` is no longer`, all)
		}
	}
}
