// Package iam knows the identities of a Google Cloud project, and grants services of
// Google's the use of keys.
package iam

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// projectNumber asks for the number of a project, which IAM names it by.
func projectNumber(ctx *pulumi.Context, project string) (string, error) {
	found, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{ProjectId: &project})
	if err != nil {
		return "", fmt.Errorf("project %s: %w", project, err)
	}
	return found.Number, nil
}
