package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/artifactregistry"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/projects"
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/serviceaccount"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
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
	grants []pulumi.CustomResource
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

// newImageCaches registers the caches that the stack creates, and lets its nodes read
// all of its caches, which may be in other projects. It returns the resources that nodes need to pull.
func newImageCaches(ctx *pulumi.Context, name string, args Args, identity *nodeIdentity,
	child pulumi.ResourceOption) ([]pulumi.CustomResource, error) {
	var needs []pulumi.CustomResource
	for _, cache := range args.Images.Caches {
		name := name + "-" + cache.Registry
		repository := pulumi.Sprintf("projects/%s/locations/%s/repositories/%s", cache.Project(), cache.Location(), cache.Name())
		if cache.Created() {
			created, err := artifactregistry.NewRepository(ctx, name, remoteRepository(cache), child)
			if err != nil {
				return nil, err
			}
			repository = created.ID().ToStringOutput()
		}
		grant, err := artifactregistry.NewRepositoryIamMember(ctx, name+"-nodes", &artifactregistry.RepositoryIamMemberArgs{
			Project:    pulumi.String(cache.Project()),
			Location:   pulumi.String(cache.Location()),
			Repository: repository,
			Role:       pulumi.String(gcp.RoleImageReader),
			Member:     identity.member,
		}, child)
		if err != nil {
			return nil, err
		}
		needs = append(needs, grant)
	}
	return needs, nil
}

// remoteRepository returns a cache of Docker Hub.
func remoteRepository(cache config.Cache) *artifactregistry.RepositoryArgs {
	remote := artifactregistry.RepositoryRemoteRepositoryConfigArgs{
		DockerRepository: artifactregistry.RepositoryRemoteRepositoryConfigDockerRepositoryArgs{
			PublicRepository: pulumi.String("DOCKER_HUB"),
		},
	}
	if credentials := cache.Credentials; credentials != nil {
		remote.UpstreamCredentials = artifactregistry.RepositoryRemoteRepositoryConfigUpstreamCredentialsArgs{
			UsernamePasswordCredentials: artifactregistry.RepositoryRemoteRepositoryConfigUpstreamCredentialsUsernamePasswordCredentialsArgs{
				Username:              pulumi.String(credentials.Username),
				PasswordSecretVersion: pulumi.String(credentials.PasswordSecret),
			},
		}
	}
	return &artifactregistry.RepositoryArgs{
		Project:                pulumi.String(cache.Project()),
		Location:               pulumi.String(cache.Location()),
		RepositoryId:           pulumi.String(cache.Name()),
		Description:            pulumi.String("Images of " + cache.Registry + " for the nodes of a GKE cluster"),
		Format:                 pulumi.String("DOCKER"),
		Mode:                   pulumi.String("REMOTE_REPOSITORY"),
		RemoteRepositoryConfig: remote,
	}
}
