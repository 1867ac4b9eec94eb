package gke

import (
	"github.com/pulumi/pulumi-gcp/sdk/v7/go/gcp/artifactregistry"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/config"
	"persia/gcp"
)

// newImageCaches registers the caches that the stack creates, and lets its nodes read
// all of its caches, which may be in other projects. It returns the resources that nodes need to pull.
func newImageCaches(ctx *pulumi.Context, name string, args Args, identity *nodeIdentity,
	child pulumi.ResourceOption) ([]pulumi.Resource, error) {
	var needs []pulumi.Resource
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
