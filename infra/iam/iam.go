// Package iam knows the identities of a Google Cloud project, and lets some of them
// use keys.
package iam

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/kms"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// ProjectNumber asks for the number of a project, which IAM names it by.
func ProjectNumber(ctx *pulumi.Context, project string) (string, error) {
	found, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{ProjectId: &project})
	if err != nil {
		return "", fmt.Errorf("project %s: %w", project, err)
	}
	return found.Number, nil
}

// ServiceAgent is the service account that a service of Google's acts as in a
// project.
func ServiceAgent(ctx *pulumi.Context, project, service string) (string, error) {
	number, err := ProjectNumber(ctx, project)
	return fmt.Sprintf("service-%s@%s.iam.gserviceaccount.com", number, service), err
}

// GrantKey registers the right of a service account to encrypt and decrypt with a
// key of Cloud KMS.
func GrantKey(ctx *pulumi.Context, name, key, account string, opts ...pulumi.ResourceOption) (*kms.CryptoKeyIAMMember, error) {
	return kms.NewCryptoKeyIAMMember(ctx, name, &kms.CryptoKeyIAMMemberArgs{
		CryptoKeyId: pulumi.String(key),
		Role:        pulumi.String(gcp.RoleKeyUser),
		Member:      pulumi.String("serviceAccount:" + account),
	}, opts...)
}
