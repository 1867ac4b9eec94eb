package tests

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestPublishedManifest compares the plan of PERSIA's published deployment, four StatefulSets that its script starts,
// with the plan of prod, which the end-to-end tests bring up: only what the containers run differs, and its ports.
func TestPublishedManifest(t *testing.T) {
	prod, published := programtest.DeployFile(t, "Pulumi.prod.yaml"), deployPublished(t)
	before, after := planOf(t, prod), planOf(t, published)
	assert.Len(t, after, len(before))
	var changed []string
	for _, r := range after {
		if !slices.Contains(before, r) {
			changed = append(changed, r.urn[strings.LastIndex(r.urn, "$")+1:])
		}
	}
	assert.Equal(t, []string{
		"kubernetes:apps/v1:StatefulSet::criteo-dataloader",
		"kubernetes:apps/v1:StatefulSet::criteo-embedding-ps",
		"kubernetes:apps/v1:StatefulSet::criteo-embedding-worker",
		"kubernetes:apps/v1:StatefulSet::criteo-nn-worker",
		"kubernetes:batch/v1:Job::criteo-completion", // its digest of the roles
		"kubernetes:core/v1:Service::criteo-embedding-ps",
		"kubernetes:core/v1:Service::criteo-embedding-worker",
	}, changed)

	for role, called := range map[string]string{"nn-worker": "trainer", "dataloader": "datacompose", "embedding-worker": "middleware", "embedding-ps": "embserver"} {
		set := testkit.Object[appsv1.StatefulSet](t, published.One(t, testkit.StatefulSet, "criteo-"+role))
		deployed := testkit.Object[appsv1.StatefulSet](t, prod.One(t, testkit.StatefulSet, "criteo-"+role))
		container := set.Spec.Template.Spec.Containers[0]
		assert.Equal(t, called, container.Args[len(container.Args)-1])
		assert.Contains(t, container.Env, corev1.EnvVar{Name: "LOG_DIR", Value: "/workspace/logs/"})
		assert.Contains(t, container.Env, corev1.EnvVar{Name: "PERSIA_NATS_IP", Value: "nats://persia-nats-service.nats-io.svc:4222"})
		assert.Equal(t, deployed.Spec.Replicas, set.Spec.Replicas)
		assert.Equal(t, deployed.Spec.Template.Spec.NodeSelector, set.Spec.Template.Spec.NodeSelector)
		assert.Equal(t, deployed.Spec.Template.Spec.Volumes, set.Spec.Template.Spec.Volumes)
	}
}

// deployPublished runs the program over prod with testdata/train.persia.yml, and what launch.sh exports.
func deployPublished(t *testing.T) *testkit.Recorder {
	t.Helper()
	text := testkit.Must(os.ReadFile(filepath.Join("testdata", "train.persia.yml")))(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.persia.yml"), text, 0o600))
	type edits = testkit.Edits
	configuration := programtest.ReadStack(t, "Pulumi.prod.yaml", edits{"persia:nats": edits{"nodePool": "nats"}, "persia:jobs[0]": edits{
		"manifest": "train.persia.yml", "name": "criteo",
		"persiaEnv": edits{
			"PERSIA_GLOBAL_CONFIG": "/workspace/persia-exp/global_config.yml", "PERSIA_EMBEDDING_CONFIG": "/workspace/persia-exp/criteo_embedding_config.yml",
			"PERSIA_NN_WORKER_ENTRY": "/workspace/persia-exp/train.py", "PERSIA_DATALOADER_ENTRY": "/workspace/persia-exp/data_compose.py",
		},
		"env": []any{
			edits{"name": "PERSIA_MODEL_CONFIG", "value": "/workspace/persia-exp/criteo_config.yml"},
			edits{"name": "LOG_DIR", "value": "/workspace/logs/"},
		},
		"script":                   edits{"runtime": "/workspace/persia-exp/runtime/avx2"},
		"mounts":                   []any{edits{"volume": "workspace", "mountPath": "/workspace"}},
		"nnWorker":                 edits{"nodePool": "nn-workers"},
		"dataloader":               edits{"nodePool": "dataloaders"},
		"embeddingWorker":          edits{"nodePool": "embedding-workers"},
		"embeddingParameterServer": edits{"nodePool": "embedding-ps"},
	}})
	return testkit.Must(programtest.Run(t, pulumi.RunInfo{Config: configuration, RootDirectory: dir}, nil))(t)
}
