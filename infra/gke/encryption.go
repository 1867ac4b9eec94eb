package gke

import (
	"fmt"

	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/kms"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/organizations"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
)

// keyUse is a key of Cloud KMS and the service agent of Google's that uses it.
type keyUse struct{ name, key, agent string }

// keyUses are those of the keys that are given.
func keyUses(encryption config.Encryption) []keyUse {
	var uses []keyUse
	for _, use := range []keyUse{
		{"secrets", encryption.Secrets, "container-engine-robot"},
		{"boot-disks", encryption.BootDisks, "compute-system"},
	} {
		if use.key != "" {
			uses = append(uses, use)
		}
	}
	return uses
}

// newKeyGrants registers the right of Google's service agents to use the keys.
func newKeyGrants(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	uses := keyUses(args.Cluster.Encryption)
	if len(uses) == 0 {
		return nil, nil
	}
	project, err := organizations.LookupProject(ctx, &organizations.LookupProjectArgs{ProjectId: &args.Project})
	if err != nil {
		return nil, fmt.Errorf("project %s: %w", args.Project, err)
	}
	var grants []pulumi.Resource
	for _, use := range uses {
		grant, err := kms.NewCryptoKeyIAMMember(ctx, name+"-"+use.name+"-key", &kms.CryptoKeyIAMMemberArgs{
			CryptoKeyId: pulumi.String(use.key),
			Role:        pulumi.String("roles/cloudkms.cryptoKeyEncrypterDecrypter"),
			Member:      pulumi.String(serviceAgent(project.Number, use.agent)),
		}, child)
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// serviceAgent is the identity that a service of Google has in a project.
func serviceAgent(projectNumber, service string) string {
	return fmt.Sprintf("serviceAccount:service-%s@%s.iam.gserviceaccount.com", projectNumber, service)
}

func secretEncryption(encryption config.Encryption) container.ClusterDatabaseEncryptionArgs {
	if encryption.Secrets == "" {
		return container.ClusterDatabaseEncryptionArgs{State: pulumi.String("DECRYPTED")}
	}
	return container.ClusterDatabaseEncryptionArgs{
		State:   pulumi.String("ENCRYPTED"),
		KeyName: pulumi.String(encryption.Secrets),
	}
}
