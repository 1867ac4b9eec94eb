package gke

import (
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/kube"
)

// setsBack lets an update reset a field that another client, such as kubectl scale, has written.
// Without it, the provider refuses the update.
const setsBack = pulumi.Bool(true)

// UseCluster registers a component for an existing cluster, with an Adopter if adopts is true. It
// registers no resource in Google Cloud. The user of Pulumi needs rights in the cluster.
func UseCluster(ctx *pulumi.Context, name string, existing config.ExistingCluster, adopts bool,
	opts ...pulumi.ResourceOption) (*Cluster, error) {
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
	if err := cluster.registerProviders(ctx, name, adopts, args, pulumi.Parent(cluster)); err != nil {
		return nil, err
	}
	return cluster, ctx.RegisterResourceOutputs(cluster, kube.Outputs(cluster))
}
