package gcp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"persia/sandbox/gcp/google"
	"persia/sandbox/gcp/property"
	"persia/sandbox/gcp/terraform"
)

func getProject(args resource.PropertyMap) (resource.PropertyMap, error) {
	project := property.Text(args, "projectId")
	if project == "" {
		return nil, errors.New("projectId is required: the simulated Google Cloud has no default project")
	}
	return resource.NewPropertyMapFromMap(map[string]any{
		"id":        "projects/" + project,
		"projectId": project,
		"name":      project,
		"number":    google.ProjectNumber,
	}), nil
}

func getProjectServiceAccount(resource.PropertyMap) (resource.PropertyMap, error) {
	email := "service-" + google.ProjectNumber + "@gs-project-accounts.iam.gserviceaccount.com"
	return resource.NewPropertyMapFromMap(map[string]any{"emailAddress": email, "member": "serviceAccount:" + email}), nil
}

func (p *Provider) getBuckets(args resource.PropertyMap) (resource.PropertyMap, error) {
	buckets, err := p.cloud.List("storage.bucket")
	found := []any{}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		if strings.HasPrefix(name, property.Text(args, "prefix")) && buckets[name]["project"] == property.Text(args, "project") {
			found = append(found, map[string]any{
				"name": name, "location": buckets[name]["location"], "labels": buckets[name]["labels"],
			})
		}
	}
	return resource.NewPropertyMapFromMap(map[string]any{"buckets": found}), err
}

// getBackupPlanPolicy answers with the policy of a backup plan. Of a plan that does not
// exist it answers with nothing, as the data source of the official provider does
// (tpgiamresource.DatasourceIamPolicyRead).
func (p *Provider) getBackupPlanPolicy(args resource.PropertyMap) (resource.PropertyMap, error) {
	name := property.Expand("projects/${project}/locations/${location}/backupPlans/${name}", args)
	plan, err := p.cloud.Get("gkebackup.backupPlan", name)
	if err != nil || plan == nil {
		return resource.PropertyMap{}, err
	}
	return resource.NewPropertyMapFromMap(map[string]any{"id": name, "etag": "ACAB", "policyData": "{}"}), nil
}

// lookup answers with a resource, or with the error of Google Cloud's provider.
func (p *Provider) lookup(kind, id string) function {
	return func(args resource.PropertyMap) (resource.PropertyMap, error) {
		name := property.Expand(id, args)
		body, err := p.cloud.Get(kind, name)
		if err != nil {
			return nil, err
		}
		if body == nil {
			return nil, fmt.Errorf("1 error occurred:\n\t* %s not found", name)
		}
		return p.terraform.Found(kind, name, body)
	}
}

// Kept returns the names of the resources in a cloud that outlive stacks.
func Kept(cloud *google.Cloud) ([]string, error) {
	var kept []string
	for kind, called := range terraform.Outliving() {
		all, err := cloud.List(kind)
		if err != nil {
			return nil, err
		}
		for name := range all {
			kept = append(kept, called+" "+name)
		}
	}
	slices.Sort(kept)
	return kept, nil
}
