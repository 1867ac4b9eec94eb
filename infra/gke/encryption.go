package gke

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/infra/iam"
)

// newKeyGrants grants Google's services the use of the configured keys.
func newKeyGrants(ctx *pulumi.Context, args Args) ([]pulumi.Resource, error) {
	var grants []pulumi.Resource
	for _, use := range []struct {
		key     string
		service iam.Service
	}{
		{args.Cluster.Encryption.Secrets, iam.KubernetesEngine},
		{args.Cluster.Encryption.BootDisks, iam.ComputeEngine},
	} {
		if use.key == "" {
			continue
		}
		grant, err := args.Keys.Grant(ctx, use.key, use.service)
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
}
