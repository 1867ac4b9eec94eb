package cachespec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// DockerHub is the registry of images that name none.
const DockerHub = "docker.io"

// Settings are the places from which nodes pull images.
type Settings struct {
	// Caches are the Artifact Registry repositories through which nodes pull the images of other
	// registries, at most one per registry. Default none: nodes pull from these registries.
	Caches []Cache `json:"caches,omitempty"`
}

// Cache is a pull-through cache for the images of one registry.
type Cache struct {
	// Registry is the host name of the registry: docker.io, for all images without a
	// registry in their name, or another, like quay.io.
	Registry string `json:"registry"`
	// Repository is an existing remote repository, in the form
	// LOCATION-docker.pkg.dev/PROJECT/REPOSITORY. Default, for docker.io only: the stack
	// creates NAME-docker-hub in the cluster's region, and deletes it when the stack is
	// destroyed.
	Repository string `json:"repository,omitempty"`
	// Credentials are for a Docker Hub account, for a repository that the stack creates. Default
	// none: then the cache serves only public images.
	Credentials *Credentials `json:"credentials,omitempty"`

	created bool
}

// Credentials are a user name and a secret in Secret Manager. The stack does not create
// the secret: grant Artifact Registry's service agent roles/secretmanager.secretAccessor
// on it.
type Credentials struct {
	// Username is the name of the account.
	Username string `json:"username"`
	// PasswordSecret is the secret version that contains the account's password or access
	// token, in the form projects/P/secrets/S/versions/V.
	PasswordSecret string `json:"passwordSecret"`
}

// Context is the part of the stack file that caches depend on.
type Context struct {
	Project, Region, Cluster string
	// Existing is true on an existing cluster, where the stack creates no repository.
	Existing bool
}

// Resolve names the repositories that the stack creates.
func (s *Settings) Resolve(context Context) {
	for i := range s.Caches {
		if c := &s.Caches[i]; c.Repository == "" && !context.Existing {
			c.created = true
			c.Repository = fmt.Sprintf("%s-docker.pkg.dev/%s/%s-docker-hub", context.Region, context.Project, context.Cluster)
		}
	}
}

// Created reports whether the stack creates the repository.
func (c Cache) Created() bool { return c.created }

// Location returns the region or multi-region of the repository.
func (c Cache) Location() string {
	host, _, _ := strings.Cut(c.Repository, "-docker.pkg.dev/")
	return host
}

// Project returns the ID of the repository's project.
func (c Cache) Project() string { return strings.Split(c.Repository, "/")[1] }

// Name returns the repository's own name.
func (c Cache) Name() string { return c.Repository[strings.LastIndex(c.Repository, "/")+1:] }

// CachesDockerHub reports whether there is a cache for Docker Hub.
func (s Settings) CachesDockerHub() bool {
	return slices.ContainsFunc(s.Caches, func(c Cache) bool { return c.Registry == DockerHub })
}

// Reference returns the reference by which nodes pull a public image.
func (s Settings) Reference(image string) string {
	return s.through(image, func(Cache) bool { return true })
}

// PrivateReference returns the reference by which nodes pull an image that may need
// credentials. It uses only caches with credentials, because a cache ignores the pull secrets
// of pods.
func (s Settings) PrivateReference(image string) string {
	return s.through(image, func(c Cache) bool { return c.Credentials != nil })
}

// through returns the image in the first suitable cache of its registry, or the image itself.
func (s Settings) through(image string, suits func(Cache) bool) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image // the API server or a kubelet reports it
	}
	for _, cache := range s.Caches {
		if cache.Registry == reference.Domain(named) && suits(cache) {
			return cache.Repository + strings.TrimPrefix(named.String(), cache.Registry)
		}
	}
	return image
}
