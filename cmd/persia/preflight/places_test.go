package preflight

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withPlaces is a stack with GPUs that are attached to machines, buckets and a cache that it does not
// create.
func withPlaces(t *testing.T) string {
	t.Helper()
	return replaceAll(t, created, map[string]string{
		"gpu: {type: nvidia-l4, count: 1}}\n": "gpu: {type: nvidia-l4, count: 1}}\n    - {name: old, machineType: n1-standard-8, nodes: 1, gpu: {type: nvidia-tesla-t4, count: 1}}\n",
		"persia:storage: []":                  "persia:storage: [{name: kept, size: 1Ti, gcsFuse: {bucket: kept}}, {name: made, size: 1Ti, gcsFuse: {bucket: made, create: {}}}]\n  persia:images: {caches: [{registry: docker.io, repository: us-central1-docker.pkg.dev/my-project/hub}]}",
		"persia:jobs: []":                     strings.Replace(training, "nodePool: gpu", "nodePool: gpu\n      volumes: [{name: inline, csi: {driver: gcsfuse.csi.storage.gke.io, volumeAttributes: {bucketName: inline}}}]", 1),
	})
}

func replaceAll(t *testing.T, text string, changes map[string]string) string {
	t.Helper()
	for old, with := range changes {
		require.Contains(t, text, old)
		text = strings.ReplaceAll(text, old, with)
	}
	return text
}

// TestPlaces checks what preflight makes of gcloud's answers about machines, buckets and caches, which
// TestWithRealGcloud compares with the real gcloud's.
func TestPlaces(t *testing.T) {
	const (
		far   = "; use a bucket in us-central1\n"
		cache = "image cache us-central1-docker.pkg.dev/my-project/hub: "
	)
	for name, c := range map[string]struct {
		machines, gpus, buckets, caches string
		want                            string
	}{
		"all there":        {want: ""},
		"a multi-region":   {buckets: `echo '{"location": "US"}'`, want: ""},
		"unknown location": {buckets: `echo '{"location": "MARS1"}'`, want: ""},
		"buckets far away": {buckets: `echo '{"location": "EUROPE-WEST4"}'`,
			want: "warning bucket kept: EUROPE-WEST4 is far from the cluster in us-central1, so checkpoints are slow and their traffic is billed" + far +
				"warning bucket inline: EUROPE-WEST4 is far from the cluster in us-central1, so checkpoints are slow and their traffic is billed" + far},
		"no bucket": {buckets: `case "$*" in *gs://kept*) echo 'ERROR: (gcloud.storage.buckets.describe) gs://kept not found: 404.' >&2; exit 1;; esac; echo '{"location": "US-CENTRAL1"}'`,
			want: "missing bucket kept: it does not exist, so no pod that mounts it starts; correct the name, write create: {} next to it, or run gcloud storage buckets create gs://kept --location=us-central1 --project=my-project\n"},
		"no right to see a bucket": {buckets: `case "$*" in *gs://kept*) echo 'ERROR: (gcloud.storage.buckets.describe) [None] does not have permission to access b instance [kept] (or it may not exist): no' >&2; exit 1;; esac; echo '{"location": "US-CENTRAL1"}'`,
			want: "unchecked bucket kept: (gcloud.storage.buckets.describe) [None] does not have permission to access b instance [kept] (or it may not exist): no; \n"},
		"no machine of a type": {machines: `case "$*" in *n1-standard-8*) printf 'ERROR: (gcloud.compute.machine-types.describe) Could not fetch resource:\n - The resource x was not found\n' >&2; exit 1;; esac; echo '{}'`,
			want: "missing machine n1-standard-8: us-central1-a has none; write other zones or another machine type; this lists the zones that have it: gcloud compute machine-types list --filter=name=n1-standard-8 --project=my-project\n"},
		"no GPU of a type": {gpus: `printf 'ERROR: (gcloud.compute.accelerator-types.describe) Could not fetch resource:\n - The resource x was not found\n' >&2; exit 1`,
			want: "missing machine nvidia-tesla-t4: us-central1-a has none; write other zones or another machine type; this lists the zones that have it: gcloud compute accelerator-types list --filter=name=nvidia-tesla-t4 --project=my-project\n"},
		"a network that fails": {gpus: `echo 'ERROR: Max retries exceeded, and the resource was not found' >&2; exit 1`,
			want: "unchecked machine nvidia-tesla-t4: Max retries exceeded, and the resource was not found; needed in us-central1-a; \n"},
		"no cache": {caches: `echo 'ERROR: (gcloud.artifacts.repositories.describe) NOT_FOUND: Requested entity was not found.' >&2; exit 1`,
			want: "missing " + cache + "it does not exist, so no node can pull an image of docker.io; gcloud artifacts repositories create hub --repository-format=docker --mode=remote-repository --remote-docker-repo=https://docker.io --location=us-central1 --project=my-project\n"},
		"a repository of one's own images": {caches: `echo '{"format": "DOCKER", "mode": "STANDARD_REPOSITORY"}'`,
			want: "missing " + cache + "it is a STANDARD_REPOSITORY of the format DOCKER, and does not fetch images of docker.io; write another repository, or create one: gcloud artifacts repositories create NAME --repository-format=docker --mode=remote-repository --remote-docker-repo=https://docker.io --location=us-central1 --project=my-project\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.stack(withPlaces(t))
			for command, script := range map[string]string{
				"compute machine-types describe":     cmp.Or(c.machines, `echo '{}'`),
				"compute accelerator-types describe": cmp.Or(c.gpus, `echo '{}'`),
				"storage buckets describe":           cmp.Or(c.buckets, `echo '{"location": "US-CENTRAL1"}'`),
				"artifacts repositories describe":    cmp.Or(c.caches, `echo '{"format": "DOCKER", "mode": "REMOTE_REPOSITORY"}'`),
			} {
				m.gcloud(command, script)
			}
			assert.Equal(t, c.want, problems(slices.DeleteFunc(m.run(m.options()), func(c Check) bool { return !ofPlace(c) })))
		})
	}
}

// ofPlace reports whether a check is one of machines, buckets and caches.
func ofPlace(c Check) bool {
	return slices.ContainsFunc([]string{machineName, bucketName, cacheName}, func(name string) bool { return strings.HasPrefix(c.Name, name) })
}

// TestPlacesOffline checks that an offline preflight lists what it could not check.
func TestPlacesOffline(t *testing.T) {
	m := newMachine(t)
	m.stack(withPlaces(t))
	options := m.options()
	options.Offline = true
	found := problems(m.run(options))
	for _, want := range []string{
		"unchecked machine g2-standard-32: offline; needed in us-central1-a", "unchecked machine nvidia-tesla-t4: offline",
		"unchecked bucket kept: offline", "unchecked bucket inline: offline", "unchecked image cache us-central1-docker.pkg.dev/my-project/hub: offline",
	} {
		assert.Contains(t, found, want)
	}
	assert.NotContains(t, found, "bucket made", "the stack creates it")
}
