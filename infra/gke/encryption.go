package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/container"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/infra/iam"
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
	var grants []pulumi.Resource
	for _, use := range keyUses(args.Cluster.Encryption) {
		agent, err := iam.ServiceAgent(ctx, args.Project, use.agent)
		if err != nil {
			return nil, err
		}
		grant, err := iam.GrantKey(ctx, name+"-"+use.name+"-key", use.key, agent, child)
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
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
