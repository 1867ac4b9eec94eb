package tests

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// cloud is what Google Cloud has, by its identifier.
type cloud map[string]map[string]any

// call answers what the program asks as Google Cloud's provider does.
func (c cloud) call(args pulumi.MockCallArgs) (resource.PropertyMap, error) {
	text := func(name string) string { return args.Args[resource.PropertyKey(name)].StringValue() }
	switch args.Token {
	case "pulumi:pulumi:readStackOutputs":
		return resource.NewPropertyMapFromMap(map[string]any{"outputs": c["outputs"]}), nil
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
			"emailAddress": "service-123456789012@gs-project-accounts.iam.gserviceaccount.com",
		}), nil
	case "gcp:filestore/getInstance:getInstance":
		return c.one("projects/%s/locations/%s/instances/%s", text("project"), text("location"), text("name"))
	case "gcp:container/getCluster:getCluster":
		return c.one("projects/%s/locations/%s/clusters/%s", text("project"), text("location"), text("name"))
	case "gcp:compute/getDisk:getDisk":
		return c.one("projects/%s/zones/%s/disks/%s", text("project"), text("zone"), text("name"))
	case "gcp:compute/getRegionDisk:getRegionDisk":
		return c.one("projects/%s/regions/%s/disks/%s", text("project"), text("region"), text("name"))
	}
	return nil, fmt.Errorf("the program calls %s, which the recorder does not know", args.Token)
}

func (c cloud) one(format string, args ...any) (resource.PropertyMap, error) {
	id := fmt.Sprintf(format, args...)
	found, ok := c[id]
	if !ok {
		return nil, fmt.Errorf("1 error occurred:\n\t* %s not found", id)
	}
	return resource.NewPropertyMapFromMap(found), nil
}
