package gcp

import (
	"context"
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// projectNumber is the number of every simulated project.
const projectNumber = "123456789012"

// functions are the functions that the program calls.
var functions = map[tokens.ModuleMember]func(args resource.PropertyMap) resource.PropertyMap{
	"gcp:organizations/getProject:getProject": func(args resource.PropertyMap) resource.PropertyMap {
		project := text(args, "projectId")
		return properties(map[string]any{
			"id":        "projects/" + project,
			"projectId": project,
			"name":      project,
			"number":    projectNumber,
		})
	},
}

// plainKinds are the resources that nothing in the sandbox needs to stand for:
// their names and identifiers are all that others use of them.
func plainKinds() map[tokens.Type]kind {
	return map[tokens.Type]kind{
		"gcp:compute/network:Network": plain("projects/%s/global/networks/%s",
			[]string{"project", "name"}, "name", "project", "autoCreateSubnetworks"),
		"gcp:compute/subnetwork:Subnetwork": plain("projects/%s/regions/%s/subnetworks/%s",
			[]string{"project", "region", "name"}, "name", "project", "region", "network"),
		"gcp:compute/router:Router": plain("projects/%s/regions/%s/routers/%s",
			[]string{"project", "region", "name"}, "name", "project", "region", "network"),
		"gcp:compute/routerNat:RouterNat": plain("%s/%s/%s/%s",
			[]string{"project", "region", "router", "name"}, "name", "project", "region", "router"),
		"gcp:projects/iAMMember:IAMMember": plain("%s/%s/%s",
			[]string{"project", "role", "member"}, "project", "role", "member"),
		"gcp:storage/bucketIAMMember:BucketIAMMember": plain("b/%s/%s/%s",
			[]string{"bucket", "role", "member"}, "bucket", "role", "member"),
		"gcp:serviceaccount/account:Account": serviceAccount(),
	}
}

// plain is a resource whose identifier is format with the inputs named by parts.
func plain(format string, parts []string, replaceOn ...resource.PropertyKey) kind {
	id := func(inputs resource.PropertyMap) string {
		values := make([]any, len(parts))
		for i, part := range parts {
			values[i] = text(inputs, part)
		}
		return fmt.Sprintf(format, values...)
	}
	return kind{
		id:        id,
		replaceOn: replaceOn,
		apply: func(_ context.Context, req request) (resource.PropertyMap, error) {
			return properties(map[string]any{
				"selfLink": "https://www.googleapis.com/compute/v1/" + id(req.inputs),
			}), nil
		},
	}
}

func serviceAccount() kind {
	email := func(inputs resource.PropertyMap) string {
		return fmt.Sprintf("%s@%s.iam.gserviceaccount.com", text(inputs, "accountId"), text(inputs, "project"))
	}
	id := func(inputs resource.PropertyMap) string {
		return fmt.Sprintf("projects/%s/serviceAccounts/%s", text(inputs, "project"), email(inputs))
	}
	return kind{
		id:        id,
		replaceOn: []resource.PropertyKey{"accountId", "project"},
		apply: func(_ context.Context, req request) (resource.PropertyMap, error) {
			return properties(map[string]any{
				"email":  email(req.inputs),
				"member": "serviceAccount:" + email(req.inputs),
				"name":   id(req.inputs),
			}), nil
		},
	}
}
