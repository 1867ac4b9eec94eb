package cachespec

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/gcp"
)

var (
	registryForm   = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9-]+-docker\.pkg\.dev/[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$`)
	secretForm     = regexp.MustCompile(`^projects/[^/]+/secrets/[a-zA-Z0-9_-]{1,255}/versions/[0-9]+$`)
	// googleForm matches the hosts of Artifact Registry, which needs no cache.
	googleForm = regexp.MustCompile(`(^|\.)(gcr\.io|pkg\.dev)$`)
)

// multiRegions are the locations of Artifact Registry that span regions.
var multiRegions = []string{"us", "europe", "asia"}

// near reports whether a location of Artifact Registry has its images in a region.
func near(location, region string) bool {
	if location == "europe" {
		location = "EU" // as Cloud Storage calls it
	}
	return gcp.LocationHolds(strings.ToUpper(location), region)
}

// WarnOfLocation warns of a location of Artifact Registry that may not exist, or is far from the
// region of a cluster. The region may be empty.
func WarnOfLocation(p *check.Problems, path *field.Path, location, region string) {
	known := check.Known(p, path, location, "location of Artifact Registry", append(gcp.Regions(), multiRegions...), "`gcloud artifacts locations list`")
	if known && region != "" && !near(location, region) {
		p.Warn(path, "%s is far from the cluster in %s, so nodes pull slowly and the traffic is billed; use a repository in that region", location, region)
	}
}

// Check checks resolved settings.
func (s Settings) Check(p *check.Problems, path *field.Path, context Context) {
	caches := path.Child("caches")
	for i, c := range s.Caches {
		c.check(p, caches.Index(i), context)
	}
	check.UniqueField(p, caches, "registry", s.Caches, func(c Cache) string { return c.Registry }, "is already used by caches[%d]; write one cache for each registry")
}

func (c Cache) check(p *check.Problems, path *field.Path, context Context) {
	c.checkRegistry(p, path.Child("registry"))
	switch at := path.Child("repository"); {
	case c.Repository == "":
		p.Required(at, "write an existing remote repository as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY, because the stack creates nothing in Google Cloud on an existing cluster")
	case c.created && c.Registry != DockerHub && registryForm.MatchString(c.Registry):
		p.Required(at, "create one with `gcloud artifacts repositories create NAME --repository-format=docker --mode=remote-repository --remote-docker-repo=https://%s --location=%s`, and write it as %s-docker.pkg.dev/PROJECT/NAME: the stack can create a cache only for docker.io", c.Registry, context.Region, context.Region)
	case !c.created && !repositoryForm.MatchString(c.Repository):
		p.Invalid(at, c.Repository, "must be an Artifact Registry repository as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY; `gcloud artifacts repositories list` lists yours")
	}
	if location := c.Location(); !c.created && repositoryForm.MatchString(c.Repository) {
		at := path.Child("repository")
		if !check.IsRegion(location) && !slices.Contains(multiRegions, location) {
			p.Invalid(at, c.Repository, "begins with %s, which is no location of Artifact Registry; write a region, like us-central1, or %s", location, check.Or(multiRegions))
		} else {
			WarnOfLocation(p, at, location, context.Region)
		}
	}
	if at := path.Child("credentials"); c.Credentials != nil {
		if !c.created {
			p.Forbidden(at, "an existing repository has its own credentials; remove it, or remove repository")
		}
		c.Credentials.check(p, at)
	}
}

func (c Cache) checkRegistry(p *check.Problems, path *field.Path) {
	switch host, _, _ := strings.Cut(c.Registry, "/"); {
	case c.Registry == "":
		p.Required(path, "write the host of a registry, like docker.io")
	case host == "index.docker.io" || host == "registry-1.docker.io" || host == "hub.docker.com":
		p.Invalid(path, c.Registry, "is another name of Docker Hub; write docker.io")
	case googleForm.MatchString(host):
		p.Invalid(path, c.Registry, "is a registry of Google Cloud, which nodes pull from directly; remove the cache")
	case !registryForm.MatchString(c.Registry):
		p.Invalid(path, c.Registry, "must be the host of a registry, like docker.io, without scheme and path")
	}
}

func (c Credentials) check(p *check.Problems, path *field.Path) {
	if c.Username == "" {
		p.Required(path.Child("username"), "write the name of the Docker Hub account")
	}
	switch at := path.Child("passwordSecret"); {
	case c.PasswordSecret == "":
		p.Required(at, "write the version of a secret in Secret Manager, as projects/P/secrets/S/versions/V")
	case !secretForm.MatchString(c.PasswordSecret):
		// Perhaps the password itself, which must not be shown.
		p.Forbidden(at, "must be the version of a secret in Secret Manager, as projects/P/secrets/S/versions/V; `gcloud secrets versions list S` lists the versions of yours")
	}
}
