package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
	"persia/internal/testkit"
)

// TestStackWarned checks the warnings that span topics.
func TestStackWarned(t *testing.T) {
	const nodePool, image = "persia:nodePools[3]", "persia:jobs[0].dataloader.image"
	pool := func(machineType string) edits {
		return edits{nodePool: edits{"name": "spare", "machineType": machineType, "nodes": 1}}
	}
	from := func(name string) edits { return edits{image: name} }
	described := func(name string) edits {
		return edits{"persia:machineTypes": edits{name: edits{"cpus": 32, "memory": "128Gi"}}}
	}
	in := func(region, zone string) edits {
		return edits{"persia:cluster.region": region, "persia:cluster.zones": []any{zone}}
	}
	filestore := func(location string) edits {
		return edits{"persia:storage[1]": edits{"name": "more", "size": "1Ti", "filestore": edits{"instance": "fs", "location": location, "share": "s"}}}
	}
	bucket := func(location string) edits {
		return edits{"persia:storage[0].gcsFuse.create": edits{"location": location}}
	}
	cache := func(location string) edits {
		return edits{"persia:images.caches": []any{edits{"registry": "docker.io", "repository": location + "-docker.pkg.dev/p/r"}}}
	}
	const region, zone = "persia:cluster.region", "persia:cluster.zones[0]"
	const location, bucketLocation, repository = "persia:storage[1].filestore.location", "persia:storage[0].gcsFuse.create.location", "persia:images.caches[0].repository"
	testkit.Warned(t, []testkit.Refusal{
		// Places.
		{"region that is none", in("us-central9", "us-central9-a"), region, []string{"us-central9 is no region that the program knows", "did you mean us-central1?", "gcloud compute regions list"}},
		{"region like none", in("atlantis-west7", "atlantis-west7-a"), region, []string{"atlantis-west7 is no region", "correct it"}},
		{"zones of a region that is none", in("us-central9", "us-central9-a"), zone, nil},
		{"zone that is none", in("us-central1", "us-central1-z"), zone, []string{"us-central1-z is no zone", "write us-central1-a, us-central1-b, us-central1-c or us-central1-f", "gcloud compute zones list"}},
		{"zone of a region without a", in("us-east1", "us-east1-a"), zone, []string{"us-east1-a is no zone", "write us-east1-b, us-east1-c or us-east1-d"}},
		{"AI zone", in("us-central1", "us-central1-ai1a"), zone, nil},
		{"zone of a pool that is none", edits{"persia:nodePools[2].zones": []any{"us-central1-d"}}, "persia:nodePools[2].zones[0]", []string{"us-central1-d is no zone"}},
		{"Filestore in a zone that is none", filestore("us-central1-z"), location, []string{"us-central1-z is no zone"}},
		{"Filestore in a region that is none", filestore("us-central9"), location, []string{"us-central9 is no region", "did you mean us-central1?"}},
		{"bucket in a region that is none", bucket("us-central9"), bucketLocation, []string{"US-CENTRAL9 is no location of buckets", "did you mean US-CENTRAL1?"}},
		{"bucket in a state", bucket("Iowa"), bucketLocation, []string{"IOWA is no location of buckets", "correct it"}},
		{"cache in a region that is none", cache("us-central9"), repository, []string{"us-central9 is no location of Artifact Registry", "did you mean us-central1?"}},
		{"image in a region that is none", from("us-central9-docker.pkg.dev/persia-project/a/b:1"), image, []string{"us-central9 is no location of Artifact Registry"}},
		// Pools and machines.
		{"pool that nothing uses", pool("n2-standard-8"), nodePool, []string{"nothing of the stack runs on the pool spare", "remove it"}},
		{"GPU pool that no role uses", pool("a2-highgpu-1g"), nodePool, []string{"nothing of the stack runs on the pool spare", "billed"}},
		{"pools that roles use", edits{}, "persia:nodePools[0]", nil},
		{"GPUs that no role requests", edits{"persia:jobs[0].nnWorker.resources": edits{"limits": edits{"cpu": 80, "memory": "600Gi"}}}, "persia:nodePools[0]", []string{"no role on the pool training requests its GPUs", "nvidia.com/gpu"}},
		{"NATS on spot machines", edits{"persia:nodePools[1].spot": true, "persia:nats.nodePool": "loaders"}, "persia:nats.nodePool", []string{"pool loaders has spot machines", "without spot"}},
		{"PEDL on spot machines", edits{"persia:nodePools[1].spot": true, "persia:pedl": pedlOn("loaders", edits{})}, "persia:pedl.nodePool", []string{"pool loaders has spot machines", "without spot"}},
		{"long grace period on spot machines", edits{"persia:nodePools[1].spot": true, "persia:jobs[0].dataloader.terminationGracePeriodSeconds": 120}, "persia:jobs[0].dataloader.terminationGracePeriodSeconds", []string{"15 s to end", "not 120"}},
		{"usual grace period on spot machines", edits{"persia:nodePools[1].spot": true}, "persia:jobs[0].dataloader.terminationGracePeriodSeconds", nil},
		// Images.
		{"image far away", from("europe-west4-docker.pkg.dev/persia-project/a/b:1"), image, []string{"europe-west4 is far from the cluster in us-central1"}},
		{"image of the same continent", from("us-docker.pkg.dev/persia-project/a/b:1"), image, nil},
		{"image of the region", from("us-central1-docker.pkg.dev/persia-project/a/b:1"), image, nil},
		{"image of another project", from("us-docker.pkg.dev/another/a/b:1"), image, []string{"in the project another", "grant persia-nodes@persia-project.iam.gserviceaccount.com roles/artifactregistry.reader"}},
		{"image of NATS far away", edits{"persia:nats.image": "europe-docker.pkg.dev/persia-project/a/nats"}, "persia:nats.image", []string{"europe is far from the cluster"}},
		{"image of the operator in another project", edits{"persia:operator.image": "us-docker.pkg.dev/another/a/b:1"}, "persia:operator.image", []string{"in the project another"}},
		{"image of PEDL far away", edits{"persia:pedl": pedlOn("ps", edits{}).And(edits{"masterImage": "asia-docker.pkg.dev/persia-project/a/b:1"})}, "persia:pedl.masterImage", []string{"asia is far from the cluster"}},
		{"image of agents in another project", edits{"persia:pedl": pedlOn("ps", edits{}).And(edits{"agentImage": "us-docker.pkg.dev/another/a/b:1"})}, "persia:pedl.agentImage", []string{"in the project another"}},
		{"image of a database far away", edits{"persia:pedl": pedlOn("ps", edits{}), "persia:pedl.postgresql.image": edits{"registry": "asia-docker.pkg.dev", "repository": "persia-project/a/postgresql"}},
			"persia:pedl.postgresql.image.registry", []string{"asia is far from the cluster"}},
		{"image as a volume far away", withVolume(edits{"image": edits{"reference": "asia-docker.pkg.dev/persia-project/a/model:1"}}, "/data"), "persia:jobs[0].volumes[0].image.reference", []string{"asia is far from the cluster"}},
		{"image of Container Registry far away", from("eu.gcr.io/persia-project/a:1"), image, []string{"europe is far from the cluster"}},
		{"image of Container Registry in another project", from("gcr.io/another/a:1"), image, []string{"in the project another"}},
		{"image of Container Registry", from("gcr.io/persia-project/a:1"), image, nil},
		{"image on the node", from("localhost:5000/loader:1"), image, []string{"on each node itself", "Artifact Registry"}},
	})
	testkit.Refused(t, []testkit.Refusal{
		{"Arm machines", described("t2a-standard-32").And(edits{nodePool: edits{"name": "spare", "machineType": "t2a-standard-32", "nodes": 1, "zones": []any{"us-central1-a"}, "disk": edits{"type": "pd-balanced"}},
			"persia:jobs[0].dataloader.nodePool": "spare"}), "persia:jobs[0].dataloader.nodePool", []string{`"spare"`, "Arm machines, t2a-standard-32", "another machine type"}},
		{"Arm machines of the system pool", described("t2a-standard-32").And(edits{"persia:cluster.systemPool": edits{"machineType": "t2a-standard-32"}}), "persia:cluster.systemPool.machineType", []string{"Arm machines, t2a-standard-32", "the cluster's services"}},
		{"Arm machines for PEDL's agents", described("t2a-standard-32").And(edits{nodePool: edits{"name": "spare", "machineType": "t2a-standard-32", "nodes": 1, "zones": []any{"us-central1-a"}, "disk": edits{"type": "pd-balanced"}},
			"persia:pedl": pedlOn("ps", edits{}).And(edits{"agent": edits{"nodePools": []any{"spare"}}})}), "persia:pedl.agent.nodePools[0]", []string{`"spare"`, "Arm machines", "PEDL's agents"}},
		{"Arm machines for PEDL's check", described("c4a-standard-48").And(edits{"persia:machineTypes[c4a-standard-48].gpu": edits{"type": "nvidia-x9", "count": 1},
			nodePool:      edits{"name": "spare", "machineType": "c4a-standard-48", "nodes": 1, "zones": []any{"us-central1-a"}, "disk": edits{"type": "hyperdisk-balanced"}},
			"persia:pedl": pedlOn("ps", edits{}).And(edits{"supportCheck": edits{"nodePool": "spare"}}), "persia:nvidiaDriver": edits{"installer": "managed"}}), "persia:pedl.supportCheck.nodePool", []string{`"spare"`, "Arm machines", "the check"}},
		{"image without a repository", from("us-docker.pkg.dev/persia-project/loader:1"), image, []string{"LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE"}},
		{"image without a location", from("docker.pkg.dev/persia-project/a/loader:1"), image, []string{"LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE"}},
	}, "Arm machines of the system pool") // NATS runs there too
}

// pedlOn returns a PEDL on a node pool, whose service has some settings.
func pedlOn(pool string, service edits) edits {
	small := edits{"limits": edits{"cpu": 1, "memory": "1Gi"}}
	return edits{"registry": edits{"password": "word"}, "nodePool": pool, "resources": small, "service": service,
		"postgresql": edits{"postgresqlPassword": "word", "resources": small}}
}

// TestStackFilesWarnings checks that the repository's stack files lead to no warnings but these.
func TestStackFilesWarnings(t *testing.T) {
	expected := []string{
		"persia:nats.size: 60 ",
		"persia:pedl.agent.nodePools: nodes with COS_CONTAINERD have containerd and no Docker",
	}
	paths, err := filepath.Glob("../Pulumi.*.yaml")
	require.NoError(t, err)
	examples, err := filepath.Glob("../examples/Pulumi.*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	require.NotEmpty(t, examples)
	for _, path := range append(paths, examples...) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		s, err := config.Load(testkit.Parse(t, string(text)).Decrypted().Get, os.DirFS("../examples"))
		require.NoError(t, err, path)
		for _, warning := range s.Warnings() {
			known := strings.Contains(path, "Pulumi.manifest") && strings.Contains(warning, "have no volume in common")
			for _, part := range expected {
				known = known || strings.Contains(warning, part)
			}
			assert.True(t, known, "%s: %s", path, warning)
		}
	}
}

// TestWarningOfNewerGPUs checks the warning about GPUs that the default image does not support.
func TestWarningOfNewerGPUs(t *testing.T) {
	const says = "PyTorch 1.8, which does not support"
	a3 := edits{"persia:nodePools[0].machineType": "a3-highgpu-8g", "persia:nodePools[0].gpu.type": "nvidia-h100-80gb",
		"persia:nvidiaDriver": edits{"installer": "managed"}}
	withImage := edits{"persia:jobs[0].nnWorker.image": "registry.example.com/nn-worker:2"}
	for path, value := range a3 {
		withImage[path] = value
	}
	for name, test := range map[string]struct {
		edits edits
		warns bool
	}{
		"A100":                     {edits{}, false},
		"H100":                     {a3, true},
		"H100 and an image for it": {withImage, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := testkit.Load(t, test.edits)
			require.NoError(t, err)
			warnings := strings.Join(s.Warnings(), "\n")
			assert.Equal(t, test.warns, strings.Contains(warnings, says), warnings)
			assert.Equal(t, test.warns, strings.Contains(warnings, "persia:jobs[0].nnWorker.image"), warnings)
		})
	}
}

// TestWarningOfDockerHub checks the warning about more nodes behind one NAT than Docker Hub
// serves without an account.
func TestWarningOfDockerHub(t *testing.T) {
	for name, test := range map[string]struct {
		edits edits
		warns bool
	}{
		"few nodes":                  {edits{}, false},
		"many":                       {edits{"persia:nodePools[2].nodes": 60}, true},
		"many at the maximum":        {edits{"persia:nodePools[1].autoscaling.maxNodes": 60}, true},
		"many, with a cache":         {edits{"persia:nodePools[2].nodes": 60, "persia:images": edits{"caches": []any{edits{"registry": "docker.io"}}}}, false},
		"many, with another's cache": {edits{"persia:nodePools[2].nodes": 60, "persia:images": edits{"caches": []any{edits{"registry": "quay.io", "repository": "us-docker.pkg.dev/p/quay"}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := testkit.Load(t, test.edits)
			require.NoError(t, err)
			warnings := strings.Join(s.Warnings(), "\n")
			assert.Equal(t, test.warns, strings.Contains(warnings, "persia:images: up to"), warnings)
		})
	}
}
