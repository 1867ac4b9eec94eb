package tests

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// permissions are the permissions with which the provider refreshes and creates a resource.
type permissions struct{ read, create string }

// neededFor are the permissions for each type of resource, by the methods of Google's APIs that the
// provider calls (cloud.google.com/iam/docs/roles-permissions). A type without permissions needs
// none.
var neededFor = map[string]permissions{
	testkit.Network:           {"compute.networks.get", "compute.networks.create"},
	testkit.Subnetwork:        {"compute.subnetworks.get", "compute.subnetworks.create"},
	testkit.Router:            {"compute.routers.get", "compute.routers.create"},
	testkit.RouterNAT:         {"compute.routers.get", "compute.routers.update"},
	testkit.Cluster:           {"container.clusters.get", "container.clusters.create"},
	testkit.NodePool:          {"container.clusters.get", "container.clusters.update"},
	testkit.ProjectMember:     {"resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"},
	testkit.Bucket:            {"storage.buckets.get", "storage.buckets.create"},
	testkit.BucketGrant:       {"storage.buckets.getIamPolicy", "storage.buckets.setIamPolicy"},
	testkit.Disk:              {"compute.disks.get", "compute.disks.create"},
	testkit.RegionDisk:        {"compute.disks.get", "compute.disks.create"},
	testkit.FilestoreInstance: {"file.instances.get", "file.instances.create"},
	testkit.KeyGrant:          {"cloudkms.cryptoKeys.getIamPolicy", "cloudkms.cryptoKeys.setIamPolicy"},
	testkit.Repository:        {"artifactregistry.repositories.get", "artifactregistry.repositories.create"},
	testkit.RepositoryReader:  {"artifactregistry.repositories.getIamPolicy", "artifactregistry.repositories.setIamPolicy"},
	// The page has the user create it, and update its grants.
	"gcp:serviceaccount/account:Account": {"iam.serviceAccounts.get", "iam.serviceAccounts.get"},
	// Anyone may have Google create a service agent (cloud.google.com/iam/docs/create-service-agents).
	"gcp:projects/serviceIdentity:ServiceIdentity": {},
}

// neededToCall is the permission for each function of the provider that the program calls
// (cloud.google.com/iam/docs/roles-permissions). The program calls them in previews and in updates.
var neededToCall = map[string]string{
	"gcp:compute/getDisk:getDisk":                                   "compute.disks.get",
	"gcp:compute/getNetwork:getNetwork":                             "compute.networks.get",
	"gcp:compute/getRegionDisk:getRegionDisk":                       "compute.disks.get",
	"gcp:filestore/getInstance:getInstance":                         "file.instances.get",
	"gcp:organizations/getProject:getProject":                       "resourcemanager.projects.get",
	"gcp:storage/getBuckets:getBuckets":                             "storage.buckets.list",
	"gcp:storage/getProjectServiceAccount:getProjectServiceAccount": "resourcemanager.projects.get",
}

// grantedBy lists, for each role that pages grant, the permissions that resources and functions
// need (cloud.google.com/iam/docs/roles-permissions). A final * matches any text.
var grantedBy = map[string][]string{
	"browser":                {"resourcemanager.projects.get"},
	"container.viewer":       {"container.clusters.get"},
	"container.admin":        {"container.*", "resourcemanager.projects.get"},
	"compute.viewer":         {"compute.networks.get", "compute.subnetworks.get", "compute.routers.get", "compute.disks.get"},
	"compute.networkAdmin":   {"compute.networks.*", "compute.subnetworks.*", "compute.routers.*"},
	"compute.storageAdmin":   {"compute.disks.*"},
	"iam.securityReviewer":   {"resourcemanager.projects.getIamPolicy", "storage.buckets.getIamPolicy", "cloudkms.cryptoKeys.getIamPolicy", "artifactregistry.repositories.getIamPolicy", "iam.serviceAccounts.get"},
	"iam.serviceAccountUser": {"iam.serviceAccounts.get"},
	// On the project it cannot create accounts, only look at them.
	"iam.serviceAccountViewer":        {"iam.serviceAccounts.get"},
	"iam.serviceAccountAdmin":         {"iam.serviceAccounts.*"},
	"resourcemanager.projectIamAdmin": {"resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"},
	"storage.bucketViewer":            {"storage.buckets.get", "storage.buckets.list"},
	"storage.admin":                   {"storage.*"},
	"file.viewer":                     {"file.instances.get"},
	"file.editor":                     {"file.*"},
	"cloudkms.viewer":                 {"cloudkms.cryptoKeys.get"},
	"cloudkms.admin":                  {"cloudkms.cryptoKeys.*"},
	"artifactregistry.reader":         {"artifactregistry.repositories.get"},
	"artifactregistry.admin":          {"artifactregistry.*"},
	"serviceusage.serviceUsageViewer": {"serviceusage.services.list"},
}

// granted reports whether one of the roles has a permission.
func granted(roles []string, permission string) bool {
	return permission == "" || slices.ContainsFunc(roles, func(role string) bool {
		return slices.ContainsFunc(grantedBy[role], func(pattern string) bool {
			prefix, any := strings.CutSuffix(pattern, "*")
			return permission == pattern || any && strings.HasPrefix(permission, prefix)
		})
	})
}

// rolesOfStack returns the roles that docs/guides/pull-requests.md grants the two accounts for a
// stack file: the roles for every stack, and the roles of the rows whose fields it contains.
func rolesOfStack(t *testing.T, configuration map[string]string) (preview, deploy []string) {
	t.Helper()
	page := readText(t, "docs/guides/pull-requests.md")
	for _, loop := range regexp.MustCompile(`(?s)for ROLE in ([^;]*); do\n(.*?)\n *done`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(loop[2], "gcloud projects") {
			continue
		}
		if strings.Contains(loop[2], "$PREVIEW") {
			preview = append(preview, strings.Fields(loop[1])...)
		} else {
			deploy = append(deploy, strings.Fields(loop[1])...)
		}
	}
	require.NotEmpty(t, preview)
	require.NotEmpty(t, deploy)
	require.Contains(t, page, `--role=roles/resourcemanager.projectIamAdmin --condition-from-file`)
	deploy = append(deploy, "resourcemanager.projectIamAdmin")
	_, table, found := strings.Cut(page, "| stack file contains | *preview* needs | *deploy* needs |\n")
	require.True(t, found)
	text := strings.Join(slices.Sorted(maps.Values(configuration)), "\n")
	for key := range configuration {
		text += `"` + key + `":`
	}
	code := regexp.MustCompile("`([^`]+)`")
	for _, row := range strings.Split(table, "\n")[1:] {
		if !strings.HasPrefix(row, "| ") {
			break
		}
		cells := strings.Split(row, "|")
		if !containsFields(text, cells[1]) {
			continue
		}
		for i, roles := range []*[]string{&preview, &deploy} {
			for _, role := range code.FindAllStringSubmatch(cells[2+i], -1) {
				if name := strings.TrimPrefix(role[1], "roles/"); grantedBy[name] != nil {
					*roles = append(*roles, name)
				}
			}
		}
	}
	return preview, deploy
}

// containsFields reports whether a stack file contains the fields that a cell names: all that are
// joined by "with", or one that is listed.
func containsFields(text, cell string) bool {
	var fields []bool
	for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		fields = append(fields, strings.Contains(text, `"`+field[1]+`":`))
	}
	if strings.Contains(cell, " with ") {
		return !slices.Contains(fields, false)
	}
	return slices.Contains(fields, true)
}

// withEverything is prod with all kinds of resources that the stack files do not contain.
func withEverything(t *testing.T) map[string]string {
	t.Helper()
	const key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
	configuration := programtest.ReadStack(t, "prod")
	programtest.Edit(t, configuration, "persia:cluster", func(cluster any) {
		cluster.(map[string]any)["encryption"] = map[string]any{"secrets": key}
	})
	configuration["persia:storage"] = `[
		{"name": "workspace", "size": "1Ti", "gcsFuse": {"bucket": "my-bucket", "create": {"kmsKey": "` + key + `"}, "sidecar": {"ephemeralStorage": "2Gi"}}},
		{"name": "share", "size": "1Ti", "filestore": {"instance": "f", "create": {"kmsKey": "` + key + `"}}},
		{"name": "disk", "size": "1Ti", "persistentDisk": {"disk": "d", "create": {}}},
		{"name": "regional", "size": "1Ti", "persistentDisk": {"disk": "r", "zones": ["us-central1-a", "us-central1-b"], "create": {}}}]`
	return configuration
}

// withExistingStorage is prod with storage of Google Cloud that the stack does not create, and the
// cloud that has it.
func withExistingStorage(t *testing.T) (map[string]string, testkit.Cloud) {
	t.Helper()
	configuration := programtest.ReadStack(t, "prod")
	configuration["persia:storage"] = `[
		{"name": "workspace", "size": "1Ti", "gcsFuse": {"bucket": "my-bucket", "sidecar": {"ephemeralStorage": "2Gi"}}},
		{"name": "share", "size": "1Ti", "filestore": {"instance": "mine", "location": "us-central1-a", "share": "vol1"}},
		{"name": "disk", "size": "1Ti", "persistentDisk": {"disk": "mine", "zones": ["us-central1-a"]}},
		{"name": "regional", "size": "1Ti", "persistentDisk": {"disk": "mine", "zones": ["us-central1-a", "us-central1-b"]}}]`
	return configuration, testkit.Cloud{
		"projects/my-project/locations/us-central1-a/instances/mine": {},
		"projects/my-project/zones/us-central1-a/disks/mine":         {},
		"projects/my-project/regions/us-central1/disks/mine":         {},
	}
}

// TestRolesOfContinuousIntegration: the roles of docs/guides/pull-requests.md suffice to refresh and
// to create every resource of every stack file, and for every function that the program calls.
func TestRolesOfContinuousIntegration(t *testing.T) {
	existing, cloud := withExistingStorage(t)
	stacks := map[string]map[string]string{"everything": withEverything(t), "existing storage": existing}
	for _, path := range programtest.StackFiles(t) {
		stacks[path] = programtest.ReadStackFile(t, path)
	}
	created, called := map[string]bool{}, map[string]bool{}
	for path, configuration := range stacks {
		t.Run(path, func(t *testing.T) {
			info := pulumi.RunInfo{Config: configuration, RootDirectory: filepath.Join(root, filepath.Dir(path))}
			recorder, err := programtest.Run(t, info, cloud)
			require.NoError(t, err)
			preview, deploy := rolesOfStack(t, configuration)
			check := func(needed permissions, by string) {
				t.Helper()
				assert.True(t, granted(preview, needed.read), "preview needs %s for %s, and has the roles %s", needed.read, by, preview)
				assert.True(t, granted(deploy, needed.create), "deploy needs %s for %s, and has the roles %s", needed.create, by, deploy)
			}
			for _, urn := range recorder.URNs() {
				kind := regexp.MustCompile(`gcp:[a-zA-Z]+/[^:]+:[a-zA-Z]+`).FindString(urn)
				if kind == "" {
					continue
				}
				created[kind] = true
				needed, known := neededFor[kind]
				require.True(t, known, "%s: add the permissions of its type to neededFor", urn)
				check(needed, urn)
			}
			for _, function := range recorder.Calls {
				if strings.HasPrefix(function, "pulumi:") {
					continue // The engine answers it.
				}
				called[function] = true
				permission, known := neededToCall[function]
				require.True(t, known, "%s: add its permission to neededToCall", function)
				check(permissions{permission, permission}, function)
			}
		})
	}
	for kind := range neededFor {
		assert.True(t, created[kind], "no stack has a %s", kind)
	}
	for function := range neededToCall {
		assert.True(t, called[function], "no stack calls %s", function)
	}
}

// TestRolesOfUsers: the roles of docs/start/google-cloud.md suffice to create every type of resource,
// and for every function that the program calls.
func TestRolesOfUsers(t *testing.T) {
	_, section, found := strings.Cut(readText(t, "docs/start/google-cloud.md"), "\n## 4. The account that runs `up`\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	loop := regexp.MustCompile(`for ROLE in ([^;]*);`).FindStringSubmatch(section)
	require.NotNil(t, loop)
	roles := strings.Fields(strings.ReplaceAll(loop[1], "\\", ""))
	for _, role := range regexp.MustCompile("`roles/([^`]+)`").FindAllStringSubmatch(section, -1) {
		roles = append(roles, role[1])
	}
	for _, role := range roles {
		assert.Contains(t, grantedBy, role, "add its permissions to grantedBy")
	}
	for kind, needed := range neededFor {
		assert.True(t, granted(roles, needed.read), "%s for %s", needed.read, kind)
		assert.True(t, granted(roles, needed.create), "%s for %s", needed.create, kind)
	}
	for function, permission := range neededToCall {
		assert.True(t, granted(roles, permission), "%s for %s", permission, function)
	}
}
