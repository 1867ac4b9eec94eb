package testkit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Cloud answers the program as Google Cloud and the API server would. It has the resources of Google Cloud by identifier.
// With the key "denied", it refuses each look-up.
type Cloud map[string]map[string]any

// Call answers the program's function calls as Google Cloud's provider does.
func (c Cloud) Call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	text := func(name string) string { return args.Args[resource.PropertyKey(name)].StringValue() }
	if _, denied := c["denied"]; denied && strings.HasPrefix(args.Token, "gcp:") {
		return nil, errors.New("googleapi: Error 403: Required permission, forbidden")
	}
	switch args.Token {
	case "gcp:organizations/getProject:getProject":
		return resource.NewPropertyMapFromMap(map[string]any{"number": numberOf(text("projectId"))}), nil
	case "pulumi:pulumi:readStackOutputs":
		return resource.NewPropertyMapFromMap(map[string]any{"outputs": c["outputs"]}), nil
	case "pulumi:pulumi:readStackResourceOutputs":
		return resource.NewPropertyMapFromMap(map[string]any{"outputs": c["resources"]}), nil
	case "gcp:storage/getBuckets:getBuckets":
		buckets := []any{}
		for id, bucket := range c {
			if strings.HasPrefix(id, text("prefix")) {
				buckets = append(buckets, bucket)
			}
		}
		return resource.NewPropertyMapFromMap(map[string]any{"buckets": buckets}), nil
	case "gcp:storage/getProjectServiceAccount:getProjectServiceAccount":
		return resource.NewPropertyMapFromMap(map[string]any{
			"emailAddress": "service-" + numberOf(text("project")) + "@gs-project-accounts.iam.gserviceaccount.com",
		}), nil
	case "gcp:filestore/getInstance:getInstance":
		return c.one("projects/%s/locations/%s/instances/%s", text("project"), text("location"), text("name"))
	case "gcp:compute/getNetwork:getNetwork":
		return c.one("projects/%s/global/networks/%s", text("project"), text("name"))
	case "gcp:compute/getDisk:getDisk":
		return c.one("projects/%s/zones/%s/disks/%s", text("project"), text("zone"), text("name"))
	case "gcp:compute/getRegionDisk:getRegionDisk":
		return c.one("projects/%s/regions/%s/disks/%s", text("project"), text("region"), text("name"))
	}
	return nil, fmt.Errorf("the program calls %s, which the mock does not know", args.Token)
}

// numberOf returns the number of a project, which only my-project has.
func numberOf(project string) string { return map[string]string{"my-project": "123456789012"}[project] }

func (c Cloud) one(format string, args ...any) (resource.PropertyMap, error) {
	id := fmt.Sprintf(format, args...)
	found, ok := c[id]
	if !ok {
		return nil, fmt.Errorf("1 error occurred:\n\t* %s not found", id)
	}
	return resource.NewPropertyMapFromMap(found), nil
}

// Outputs returns the outputs of a created resource: its inputs, and what Google Cloud or the API server adds to them.
func Outputs(args pulumi.MockResourceArgs) resource.PropertyMap {
	outputs := args.Inputs.Copy()
	for name, value := range computed(args) {
		outputs[resource.PropertyKey(name)] = resource.NewPropertyValue(value)
	}
	serve(args.TypeToken, outputs)
	return outputs
}

// computed are the outputs that Google Cloud would compute.
func computed(args pulumi.MockResourceArgs) map[string]any {
	switch args.TypeToken {
	case "gcp:container/cluster:Cluster":
		return map[string]any{
			"endpoint":   "203.0.113.7",
			"masterAuth": map[string]any{"clusterCaCertificate": "Y2VydGlmaWNhdGU="},
		}
	case "pulumi:index:Stash":
		return map[string]any{"output": args.Inputs["input"].StringValue()}
	case "gcp:serviceaccount/account:Account":
		email := args.Inputs["accountId"].StringValue() + "@my-project.iam.gserviceaccount.com"
		return map[string]any{"email": email, "member": "serviceAccount:" + email}
	case "gcp:filestore/instance:Instance":
		return map[string]any{"networks": []any{map[string]any{"ipAddresses": []any{"10.0.0.2"}}}}
	default:
		return nil
	}
}

// serve adds the fields that the API server adds to an object and the program reads.
func serve(typeToken string, outputs resource.PropertyMap) {
	add := func(part, field, value string) {
		fields := resource.PropertyMap{}
		if given, ok := outputs[resource.PropertyKey(part)]; ok {
			fields = given.ObjectValue().Copy()
		}
		if _, ok := fields[resource.PropertyKey(field)]; !ok {
			fields[resource.PropertyKey(field)] = resource.NewProperty(value)
		}
		outputs[resource.PropertyKey(part)] = resource.NewProperty(fields)
	}
	switch typeToken {
	case "kubernetes:core/v1:Secret", "kubernetes:core/v1:ConfigMap":
		add("metadata", "resourceVersion", "7")
	case "kubernetes:core/v1:Service":
		add("spec", "clusterIP", "10.1.0.9")
	}
}
