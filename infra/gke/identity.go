package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/projects"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/serviceaccount"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/gcp"
)

// nodeRoles are the roles with which a node writes logs and metrics and pulls images, with the names
// of their grants. Pods have their own identities through Workload Identity.
var nodeRoles = []struct{ name, role string }{
	{"default-node", gcp.RoleDefaultNode},
	{"image-reader", gcp.RoleImageReader},
}

// nodeScopes let the node's roles alone determine its rights.
func nodeScopes() pulumi.StringArray {
	return pulumi.StringArray{pulumi.String("https://www.googleapis.com/auth/cloud-platform")}
}

type nodeIdentity struct {
	email  pulumi.StringOutput
	member pulumi.StringOutput
	grants []pulumi.Resource
}

// newNodeIdentity registers the service account that the nodes run as.
func newNodeIdentity(ctx *pulumi.Context, name string, args Args, child pulumi.ResourceOption) (*nodeIdentity, error) {
	account, err := serviceaccount.NewAccount(ctx, name+"-nodes", &serviceaccount.AccountArgs{
		Project:     pulumi.String(args.Project),
		AccountId:   pulumi.String(args.Cluster.Name + "-nodes"),
		DisplayName: pulumi.String("Nodes of the GKE cluster " + args.Cluster.Name),
	}, child)
	if err != nil {
		return nil, err
	}
	identity := &nodeIdentity{email: account.Email, member: account.Member}
	for _, node := range nodeRoles {
		grant, err := projects.NewIAMMember(ctx, name+"-nodes-"+node.name, &projects.IAMMemberArgs{
			Project: pulumi.String(args.Project),
			Role:    pulumi.String(node.role),
			Member:  account.Member,
		}, child)
		if err != nil {
			return nil, err
		}
		identity.grants = append(identity.grants, grant)
	}
	return identity, nil
}
