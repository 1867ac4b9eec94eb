package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
)

// Image is a container image.
type Image struct {
	Repository, Tag, Digest string
}

// Reference returns the reference by which nodes pull the image.
func (i Image) Reference() string {
	reference := i.Repository
	if i.Tag != "" {
		reference += ":" + i.Tag
	}
	if i.Digest != "" {
		reference += "@" + i.Digest
	}
	return reference
}

// docs/reference/security.md lists all images that the program chooses. An image has a digest only if two
// independent public sources record it.

// The NATS operator, and the sidecar of the servers.
var (
	// ImageNATSOperator is the last release, and the first that supports Kubernetes 1.22 and later.
	ImageNATSOperator = Image{Repository: "natsio/nats-operator", Tag: "0.8.3"}
	// The operator's own default for this sidecar is from 2018.
	ImageNATSExporter = Image{Repository: "natsio/prometheus-nats-exporter", Tag: "0.15.0"}
)

// ImageJobSet is the controller of jobs with the engine jobset.
var ImageJobSet = Image{Repository: "registry.k8s.io/jobset/jobset", Tag: "v0.11.1"}

// The roles of a job, and the gateway to which they push metrics.
var (
	ImagePERSIACPU  = Image{Repository: "persiaml/persia-cpu-runtime", Tag: "latest"}
	ImagePERSIACUDA = Image{Repository: "persiaml/persia-cuda-runtime", Tag: "latest"}
	// ImagePushgateway also runs the completion of a job, with the BusyBox in the image.
	ImagePushgateway = Image{Repository: "prom/pushgateway", Tag: "v1.11.1"}
)

// ImageKueue is the last release for Kubernetes 1.35 that is a whole Go module.
var ImageKueue = Image{Repository: "registry.k8s.io/kueue/kueue", Tag: "v0.16.1"}

// ImagePython runs the script that asks for the nodes of queued provisioning.
var ImagePython = Image{Repository: "python", Tag: "3.13-alpine"}

// PEDL's database, and the check of its nodes.
var (
	// ImagePostgreSQL is the last image of the chart's release 10. Bitnami has removed the chart's
	// own, docker.io/bitnami/postgresql:10.8.0 (bitnami/containers, issues 83267 and 96169).
	ImagePostgreSQL = Image{Repository: "docker.io/bitnamilegacy/postgresql", Tag: "10.23.0-debian-11-r3"}
	// Several public repositories record the digests of Docker and CUDA for these tags: Dockerfiles and programs that
	// pin docker:27-cli, and the output of `docker pull` and a Dockerfile for nvidia/cuda.
	ImageDocker = Image{Repository: "docker", Tag: "27-cli", Digest: "sha256:851f91d241214e7c6db86513b270d58776379aacc5eb9c4a87e5b47115e3065c"}
	// ImageCUDA supports every driver since 2020. The node's Docker pulls it, without credentials for Artifact Registry.
	ImageCUDA = Image{Repository: "nvidia/cuda", Tag: "11.8.0-base-ubuntu22.04",
		Digest: "sha256:f895871972c1c91eb6a896eee68468f40289395a1e58c492e1be7929d0f8703b"}
)

// The installer of the NVIDIA driver for Ubuntu, as in GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer.
var (
	ImagePause = Image{Repository: "gke.gcr.io/pause", Tag: "3.8",
		Digest: "sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"}
	ImageUbuntuInstaller = Image{Repository: "gke-nvidia-installer", Tag: "fixed"}
)

// ImagesInStackNamespaces returns the images that pods in the namespaces of jobs and NATS run with any stack file.
func ImagesInStackNamespaces() []Image {
	return []Image{ImageNATSOperator, ImageNATSExporter, ImagePushgateway}
}

// DockerHub is the registry of images that name none.
const DockerHub = "docker.io"

// Images are the places from which nodes pull images.
type Images struct {
	// Caches are the Artifact Registry repositories through which nodes pull the images of other registries, at most one
	// per registry.
	Caches []Cache `json:"caches,omitempty" unique:"registry"`
}

// Cache is a pull-through cache for the images of one registry.
type Cache struct {
	// Registry is the host name of the registry: docker.io, for all images without a
	// registry in their name, or another, like quay.io.
	Registry string `json:"registry"`
	// Repository is an existing remote repository, as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY. Default, for
	// docker.io only: NAME-docker-hub in the cluster's region, which the stack creates and deletes.
	Repository string `json:"repository,omitempty"`
	// Credentials are for a Docker Hub account, for a repository that the stack creates. Default
	// none: then the cache serves only public images.
	Credentials *CacheCredentials `json:"credentials,omitempty"`

	created bool
}

// CacheCredentials are a user name and a secret in Secret Manager. The stack does not create the secret: grant
// Artifact Registry's service agent roles/secretmanager.secretAccessor on it.
type CacheCredentials struct {
	// Username is the name of the account.
	Username string `json:"username"`
	// PasswordSecret is the secret version with the account's password or access token, as projects/P/secrets/S/versions/V.
	PasswordSecret string `json:"passwordSecret"`
}

// resolve names the repositories that the stack creates.
func (s *Images) resolve(site *Site) {
	for i := range s.Caches {
		if c := &s.Caches[i]; c.Repository == "" && !site.existing() {
			c.created = true
			c.Repository = fmt.Sprintf("%s-docker.pkg.dev/%s/%s-docker-hub", site.Cluster.Region, site.Project, site.Cluster.Name)
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

// Reference returns the reference by which nodes pull a public image.
func (s Images) Reference(image string) string {
	return s.through(image, func(Cache) bool { return true })
}

// PrivateReference returns the reference by which nodes pull an image that may need credentials. It uses only caches
// with credentials, because a cache ignores the pull secrets of pods.
func (s Images) PrivateReference(image string) string {
	return s.through(image, func(c Cache) bool { return c.Credentials != nil })
}

// PulledWith returns the reference by which nodes pull an image with pull secrets, if any. With them, it may be private.
func (s Images) PulledWith(secrets []corev1.LocalObjectReference, image string) string {
	if len(secrets) > 0 {
		return s.PrivateReference(image)
	}
	return s.Reference(image)
}

// through returns the image in the first suitable cache of its registry, or the image itself.
func (s Images) through(image string, suits func(Cache) bool) string {
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

var (
	registryForm   = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9-]+-docker\.pkg\.dev/[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$`)
	secretForm     = regexp.MustCompile(`^projects/[^/]+/secrets/[a-zA-Z0-9_-]{1,255}/versions/[0-9]+$`)
)

// check checks resolved settings.
func (s Images) check(p *input.Problems, path *field.Path, site *Site) {
	caches := path.Child("caches")
	for i, c := range s.Caches {
		c.check(p, caches.Index(i), site)
	}
}

func (c Cache) check(p *input.Problems, path *field.Path, site *Site) {
	// Images of Docker Hub have the host docker.io in references, whatever name of it they are written with.
	otherNames := []string{"index.docker.io", "registry-1.docker.io", "hub.docker.com"}
	if !registryForm.MatchString(c.Registry) || slices.Contains(otherNames, c.Registry) {
		p.Invalid(path.Child("registry"), c.Registry,
			"must be the host of a registry, without scheme and path, like docker.io for all of Docker Hub")
	}
	switch at := path.Child("repository"); {
	case c.Repository == "":
		p.Required(at, "write an existing remote repository as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY, because the stack "+
			"creates nothing in Google Cloud on an existing cluster")
	case c.created && c.Registry != DockerHub && registryForm.MatchString(c.Registry):
		p.Required(at, "create one with `gcloud artifacts repositories create NAME --repository-format=docker "+
			"--mode=remote-repository --remote-docker-repo=https://%[1]s --location=%[2]s`, and write it as "+
			"%[2]s-docker.pkg.dev/PROJECT/NAME: the stack can create a cache only for docker.io", c.Registry, site.Cluster.Region)
	case !c.created && !repositoryForm.MatchString(c.Repository):
		p.Invalid(at, c.Repository, "must be an Artifact Registry repository as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY; "+
			"`gcloud artifacts repositories list` lists yours")
	}
	if at := path.Child("credentials"); c.Credentials != nil {
		if !c.created {
			p.Forbidden(at, "an existing repository has its own credentials; remove it, or remove repository")
		}
		if secret := c.Credentials.PasswordSecret; secret != "" && !secretForm.MatchString(secret) {
			// Perhaps the password itself, which must not be shown.
			p.Forbidden(at.Child("passwordSecret"), "must be the version of a secret in Secret Manager, as "+
				"projects/P/secrets/S/versions/V; `gcloud secrets versions list S` lists the versions of yours")
		}
	}
}

// checkImage checks an image reference as the kubelet parses it. The message shows the example.
func checkImage(p *input.Problems, at *field.Path, image, example string) {
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		p.Invalid(at, image, "must be an image reference, like %s: %s", example, err)
	}
}

// isLooseImage reports whether an image reference may name another image tomorrow, because it has
// no digest and no tag other than latest.
func isLooseImage(image string) bool {
	_, tag, tagged := strings.Cut(path.Base(image), ":")
	return !strings.Contains(image, "@") && (!tagged || tag == "latest")
}
