package tests

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/programtest"
	"persia/internal/pulumitest"
)

// permissions are the permissions with which the provider refreshes and creates a resource.
type permissions struct{ read, create string }

// neededFor are the permissions for each type of resource, by the methods of Google's APIs that the
// provider calls (cloud.google.com/iam/docs/roles-permissions). A type without permissions needs
// none.
var neededFor = map[string]permissions{
	pulumitest.Network:           {"compute.networks.get", "compute.networks.create"},
	pulumitest.Subnetwork:        {"compute.subnetworks.get", "compute.subnetworks.create"},
	pulumitest.Router:            {"compute.routers.get", "compute.routers.create"},
	pulumitest.RouterNAT:         {"compute.routers.get", "compute.routers.update"},
	pulumitest.Cluster:           {"container.clusters.get", "container.clusters.create"},
	pulumitest.NodePool:          {"container.clusters.get", "container.clusters.update"},
	pulumitest.ProjectMember:     {"resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"},
	pulumitest.Bucket:            {"storage.buckets.get", "storage.buckets.create"},
	pulumitest.BucketGrant:       {"storage.buckets.getIamPolicy", "storage.buckets.setIamPolicy"},
	pulumitest.Disk:              {"compute.disks.get", "compute.disks.create"},
	pulumitest.RegionDisk:        {"compute.disks.get", "compute.disks.create"},
	pulumitest.FilestoreInstance: {"file.instances.get", "file.instances.create"},
	pulumitest.BackupPlan:        {"gkebackup.backupPlans.get", "gkebackup.backupPlans.create"},
	pulumitest.KeyGrant:          {"cloudkms.cryptoKeys.getIamPolicy", "cloudkms.cryptoKeys.setIamPolicy"},
	pulumitest.Repository:        {"artifactregistry.repositories.get", "artifactregistry.repositories.create"},
	pulumitest.RepositoryReader:  {"artifactregistry.repositories.getIamPolicy", "artifactregistry.repositories.setIamPolicy"},
	// The page has the user create it, and update its grants.
	"gcp:serviceaccount/account:Account": {"iam.serviceAccounts.get", "iam.serviceAccounts.get"},
	// Anyone may have Google create a service agent (cloud.google.com/iam/docs/create-service-agents).
	"gcp:projects/serviceIdentity:ServiceIdentity": {},
}

// grantedBy lists, for each role that pages grant, the permissions that resources need
// (cloud.google.com/iam/docs/roles-permissions). A final * matches any text.
var grantedBy = map[string][]string{
	"browser":                {"resourcemanager.projects.get"},
	"container.viewer":       {"container.clusters.get"},
	"container.admin":        {"container.*"},
	"compute.viewer":         {"compute.networks.get", "compute.subnetworks.get", "compute.routers.get", "compute.disks.get"},
	"compute.networkAdmin":   {"compute.networks.*", "compute.subnetworks.*", "compute.routers.*"},
	"compute.storageAdmin":   {"compute.disks.*"},
	"iam.securityReviewer":   {"resourcemanager.projects.getIamPolicy", "storage.buckets.getIamPolicy", "cloudkms.cryptoKeys.getIamPolicy", "artifactregistry.repositories.getIamPolicy", "iam.serviceAccounts.get"},
	"iam.serviceAccountUser": {"iam.serviceAccounts.get"},
	// On the project it cannot create accounts, only look at them.
	"iam.serviceAccountViewer":        {"iam.serviceAccounts.get"},
	"iam.serviceAccountAdmin":         {"iam.serviceAccounts.*"},
	"resourcemanager.projectIamAdmin": {"resourcemanager.projects.getIamPolicy", "resourcemanager.projects.setIamPolicy"},
	"storage.bucketViewer":            {"storage.buckets.get"},
	"storage.admin":                   {"storage.*"},
	"file.viewer":                     {"file.instances.get"},
	"file.editor":                     {"file.*"},
	"gkebackup.viewer":                {"gkebackup.backupPlans.get"},
	"gkebackup.admin":                 {"gkebackup.*"},
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
		cluster.(map[string]any)["backup"] = map[string]any{"plan": map[string]any{"schedule": "0 3 * * *", "retainDays": 7}}
	})
	configuration["persia:storage"] = `[
		{"name": "workspace", "size": "1Ti", "gcsFuse": {"bucket": "my-bucket", "create": {}, "sidecar": {"ephemeralStorage": "2Gi"}}},
		{"name": "share", "size": "1Ti", "filestore": {"instance": "f", "create": {"kmsKey": "` + key + `"}}},
		{"name": "disk", "size": "1Ti", "persistentDisk": {"disk": "d", "create": {}}}]`
	return configuration
}

// TestRolesOfContinuousIntegration: the roles of docs/guides/pull-requests.md suffice to refresh and
// to create every resource of every stack file.
func TestRolesOfContinuousIntegration(t *testing.T) {
	stacks := map[string]map[string]string{"everything": withEverything(t)}
	for _, path := range programtest.StackFiles(t) {
		stacks[path] = programtest.ReadStackFile(t, path)
	}
	created := map[string]bool{}
	for path, configuration := range stacks {
		t.Run(path, func(t *testing.T) {
			recorder, err := programtest.DeployIn(t, filepath.Join(root, filepath.Dir(path)), configuration)
			require.NoError(t, err)
			preview, deploy := rolesOfStack(t, configuration)
			for _, urn := range recorder.URNs() {
				kind := regexp.MustCompile(`gcp:[a-zA-Z]+/[^:]+:[a-zA-Z]+`).FindString(urn)
				if kind == "" {
					continue
				}
				created[kind] = true
				needed, known := neededFor[kind]
				require.True(t, known, "%s: add the permissions of its type to neededFor", urn)
				assert.True(t, granted(preview, needed.read), "preview needs %s for %s, and has the roles %s", needed.read, urn, preview)
				assert.True(t, granted(deploy, needed.create), "deploy needs %s for %s, and has the roles %s", needed.create, urn, deploy)
			}
		})
	}
	for kind := range neededFor {
		assert.True(t, created[kind] || kind == pulumitest.RegionDisk, "no stack has a %s", kind)
	}
}

// TestRolesOfUsers: the roles of docs/start/google-cloud.md suffice to create every type of resource.
func TestRolesOfUsers(t *testing.T) {
	_, section, found := strings.Cut(readText(t, "docs/start/google-cloud.md"), "\n## 4. The account that runs `up`\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var roles []string
	for _, role := range regexp.MustCompile("`roles/([^`]+)`").FindAllStringSubmatch(section, -1) {
		assert.Contains(t, grantedBy, role[1], "add its permissions to grantedBy")
		roles = append(roles, role[1])
	}
	for kind, needed := range neededFor {
		assert.True(t, granted(roles, needed.read), "%s for %s", needed.read, kind)
		assert.True(t, granted(roles, needed.create), "%s for %s", needed.create, kind)
	}
}
