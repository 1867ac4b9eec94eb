package images

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

var (
	registryForm   = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9-]+-docker\.pkg\.dev/[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$`)
	secretForm     = regexp.MustCompile(`^projects/[^/]+/secrets/[a-zA-Z0-9_-]{1,255}/versions/[0-9]+$`)
	// googleForm matches the hosts of Artifact Registry, which needs no cache.
	googleForm = regexp.MustCompile(`(^|\.)(gcr\.io|pkg\.dev)$`)
)

// Check checks settings. They are resolved.
func (s Settings) Check(p *check.Problems, path *field.Path, place Place) {
	caches := path.Child("caches")
	var registries []string
	for i, c := range s.Caches {
		c.check(p, caches.Index(i), place)
		registries = append(registries, c.Registry)
	}
	check.Unique(registries, func(i, first int) {
		p.Duplicate(caches.Index(i).Child("registry"), registries[i], "is that of caches[%d]; write one cache for each registry", first)
	})
}

func (c Cache) check(p *check.Problems, path *field.Path, place Place) {
	c.checkRegistry(p, path.Child("registry"))
	switch at := path.Child("repository"); {
	case c.Repository == "":
		p.Required(at, "write a remote repository that exists, as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY, as on an existing cluster nothing of Google Cloud is created")
	case c.created && c.Registry != DockerHub && registryForm.MatchString(c.Registry):
		p.Required(at, "create one by `gcloud artifacts repositories create NAME --repository-format=docker --mode=remote-repository --remote-docker-repo=https://%s --location=%s`, and write it as %s-docker.pkg.dev/PROJECT/NAME: the stack can create a cache of docker.io only", c.Registry, place.Region, place.Region)
	case !c.created && !repositoryForm.MatchString(c.Repository):
		p.Invalid(at, c.Repository, "must be a repository of Artifact Registry, as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY; `gcloud artifacts repositories list` shows yours")
	}
	if at := path.Child("credentials"); c.Credentials != nil {
		if !c.created {
			p.Forbidden(at, "an existing repository has credentials of its own; remove it, or repository")
		}
		c.Credentials.check(p, at)
	}
}

func (c Cache) checkRegistry(p *check.Problems, path *field.Path) {
	switch host, _, _ := strings.Cut(c.Registry, "/"); {
	case c.Registry == "":
		p.Required(path, "write the host of a registry, like docker.io")
	case host == "index.docker.io" || host == "registry-1.docker.io" || host == "hub.docker.com":
		p.Invalid(path, c.Registry, "is Docker Hub by another name; write docker.io")
	case googleForm.MatchString(host):
		p.Invalid(path, c.Registry, "is a registry of Google Cloud, which nodes pull from directly; remove the cache")
	case !registryForm.MatchString(c.Registry):
		p.Invalid(path, c.Registry, "must be the host of a registry, like docker.io, without scheme and path")
	}
}

func (c Credentials) check(p *check.Problems, path *field.Path) {
	if c.Username == "" {
		p.Required(path.Child("username"), "write the name of the account at Docker Hub")
	}
	switch at := path.Child("passwordSecret"); {
	case c.PasswordSecret == "":
		p.Required(at, "write the version of a secret in Secret Manager, as projects/P/secrets/S/versions/V")
	case !secretForm.MatchString(c.PasswordSecret):
		// Perhaps the password itself, which must not be shown.
		p.Forbidden(at, "must be the version of a secret in Secret Manager, as projects/P/secrets/S/versions/V; `gcloud secrets versions list S` shows those of yours")
	}
}
