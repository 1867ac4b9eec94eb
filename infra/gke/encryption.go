package gke

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/iam"
)

// newKeyGrants grants Google's services the use of the configured keys.
func newKeyGrants(ctx *pulumi.Context, name string, args Args, cluster pulumi.Resource) ([]pulumi.Resource, error) {
	var grants []pulumi.Resource
	for _, use := range []struct {
		formerly, key string
		service       iam.Service
	}{
		{name + "-secrets-key", args.Cluster.Encryption.Secrets, iam.KubernetesEngine},
		{name + "-boot-disks-key", args.Cluster.Encryption.BootDisks, iam.ComputeEngine},
	} {
		if use.key == "" {
			continue
		}
		grant, err := args.Keys.Grant(ctx, use.key, use.service, pulumi.Alias{Name: pulumi.String(use.formerly), Parent: cluster})
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
}
