// Package iam grants Google's services the use of keys, and the pods of jobs the use of buckets.
package iam

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// projectNumber asks the provider of a component for the number of a project. IAM names a project by its number.
func projectNumber(ctx *pulumi.Context, project string, component pulumi.InvokeOption) (string, error) {
	found, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{ProjectId: &project}, component)
	if err != nil {
		return "", fmt.Errorf("project %s: %w", project, err)
	}
	return found.Number, nil
}
