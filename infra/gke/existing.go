package gke

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config/clusterspec"
)

// setsBack lets an update set back a field that somebody else has written, as
// kubectl scale does. The provider refuses such an update otherwise.
const setsBack = pulumi.Bool(true)

// UseCluster registers a component for an existing cluster. It registers no resource in
// Google Cloud, and whoever runs Pulumi needs their own rights in the cluster.
func UseCluster(ctx *pulumi.Context, name string, existing clusterspec.Existing, opts ...pulumi.ResourceOption) (*Cluster, error) {
	cluster := &Cluster{}
	if err := ctx.RegisterComponentResource("persia:gke:ExistingCluster", name, cluster, opts...); err != nil {
		return nil, err
	}
	cluster.Name = pulumi.String(name).ToStringOutput()
	args := kubernetes.ProviderArgs{
		// The same cluster by another path or context is the same.
		ClusterIdentifier: pulumi.String(name),
		EnablePatchForce:  setsBack,
	}
	// The path and not the text, which may hold a credential.
	if existing.Kubeconfig != "" {
		args.Kubeconfig = pulumi.String(existing.Kubeconfig)
	}
	if existing.Context != "" {
		args.Context = pulumi.String(existing.Context)
	}
	if err := cluster.newProvider(ctx, name, args, pulumi.Parent(cluster)); err != nil {
		return nil, err
	}
	return cluster, ctx.RegisterResourceOutputs(cluster, pulumi.Map{"name": cluster.Name})
}
