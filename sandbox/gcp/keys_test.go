package gcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox/gcp/google"
)

// filestoreWithKey returns a stack whose share is encrypted with a key.
func filestoreWithKey(t *testing.T) map[string]string {
	t.Helper()
	file := poolStackOf(t)
	file["persia:cluster"].(values)["deletionProtection"] = false
	file["persia:storage"] = []any{values{"name": "checkpoints", "size": "2560Gi", "filestore": values{
		"instance": "checkpoints", "share": "vol1", "location": "us-central1", "create": values{
			"tier": "ENTERPRISE", "kmsKey": "projects/my-project/locations/us-central1/keyRings/r/cryptoKeys/k",
		},
	}}}
	return configuration(t, file)
}

// TestKeyOfAFreshProject: the service agent of Filestore does not exist before it is
// asked for, and IAM grants nothing to an account that does not exist.
func TestKeyOfAFreshProject(t *testing.T) {
	e := newStack(t, "../..")
	e.up(filestoreWithKey(t))
	assert.Empty(t, e.up(filestoreWithKey(t)), "a second up")
	assert.Empty(t, e.refresh(), "drift")
	e.destroy()
	identities, err := e.cloud.List("serviceusage.identity")
	require.NoError(t, err)
	assert.Len(t, identities, 1, "Google never deletes a service agent")
}

func TestGrantToAnAccountThatDoesNotExist(t *testing.T) {
	cloud := google.New(t.TempDir(), google.Settings{})
	err := cloud.Create("iam.member", "key/roles/r/member", google.Body{"member": "serviceAccount:service-" + google.ProjectNumber + "@cloud-filer.iam.gserviceaccount.com"})
	require.ErrorContains(t, err, "does not exist")
}

// TestGrantToAPodBeforeItsCluster checks that IAM knows the identities of pods only once the
// project has a cluster with Workload Identity.
func TestGrantToAPodBeforeItsCluster(t *testing.T) {
	cloud := google.New(t.TempDir(), google.Settings{})
	grant := func() error {
		return cloud.Create("iam.member", "b/data/roles/r/member", google.Body{
			"member": "principal://iam.googleapis.com/projects/" + google.ProjectNumber + "/locations/global/workloadIdentityPools/p.svc.id.goog/subject/ns/persia/sa/job",
		})
	}
	create := func(name string, cluster google.Body) {
		require.NoError(t, cloud.Create("container.cluster", "projects/p/locations/us-central1/clusters/"+name, cluster))
	}
	const refusal = "Identity Pool does not exist (p.svc.id.goog)"
	require.ErrorContains(t, grant(), refusal)
	create("without", google.Body{"name": "without"})
	require.ErrorContains(t, grant(), refusal)
	create("with", google.Body{"name": "with", "workloadIdentityConfig": map[string]any{"workloadPool": "p.svc.id.goog"}})
	require.NoError(t, grant())
}
