package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// rolesFor are the roles for types and functions (cloud.google.com/iam/docs/roles-permissions).
var rolesFor = map[string]string{
	testkit.Network:                           "compute.networkAdmin",
	testkit.Subnetwork:                        "compute.networkAdmin",
	"gcp:compute/router:Router":               "compute.networkAdmin",
	"gcp:compute/routerNat:RouterNat":         "compute.networkAdmin",
	testkit.Cluster:                           "container.admin",
	testkit.NodePool:                          "container.admin",
	"gcp:projects/iAMMember:IAMMember":        "resourcemanager.projectIamAdmin",
	testkit.Bucket:                            "storage.admin",
	testkit.BucketGrant:                       "storage.admin",
	testkit.Disk:                              "compute.storageAdmin",
	testkit.RegionDisk:                        "compute.storageAdmin",
	testkit.FilestoreInstance:                 "file.editor",
	testkit.KeyGrant:                          "cloudkms.admin",
	testkit.Repository:                        "artifactregistry.admin",
	testkit.RepositoryReader:                  "artifactregistry.admin",
	"gcp:serviceaccount/account:Account":      "iam.serviceAccountAdmin",
	"gcp:compute/getDisk:getDisk":             "compute.storageAdmin",
	"gcp:compute/getNetwork:getNetwork":       "compute.networkAdmin",
	"gcp:compute/getRegionDisk:getRegionDisk": "compute.storageAdmin",
	"gcp:filestore/getInstance:getInstance":   "file.editor",
	"gcp:organizations/getProject:getProject": "container.admin",
	"gcp:storage/getBuckets:getBuckets":       "storage.admin",
	// Anyone may have Google create or name a service agent (cloud.google.com/iam/docs/create-service-agents).
	"gcp:projects/serviceIdentity:ServiceIdentity":                  "container.admin",
	"gcp:storage/getProjectServiceAccount:getProjectServiceAccount": "container.admin",
}

// TestRoles: the pages grant the roles for all that the stack files, and for a start dev, create and ask for.
func TestRoles(t *testing.T) {
	for page, paths := range map[string][]string{
		"docs/start/google-cloud.md":   programtest.StackFiles(t),
		"docs/guides/pull-requests.md": {"Pulumi.dev.yaml"},
	} {
		used := map[string]bool{}
		for _, path := range paths {
			recorder := programtest.DeployFile(t, path)
			for _, r := range recorder.Resources {
				used[r.TypeToken] = true
			}
			for _, function := range recorder.Calls {
				used[function] = true
			}
		}
		text := readText(t, page)
		for token := range used {
			if strings.HasPrefix(token, "gcp:") {
				require.Contains(t, rolesFor, token, "add the role that it needs, here and to both pages")
				assert.Contains(t, text, rolesFor[token], "%s for %s", page, token)
			}
		}
	}
}
