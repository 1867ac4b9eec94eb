package config

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
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

// The NATS operator, the servers that it runs, and their sidecars.
var (
	// ImageNATSOperator is the last release, and the first that supports Kubernetes 1.22 and later.
	ImageNATSOperator = Image{Repository: "natsio/nats-operator", Tag: "0.8.3"}
	// ImageNATSServer is the default of persia:nats (package natsspec).
	ImageNATSServer = Image{Repository: "nats", Tag: "2.10.22"}
	// The operator's own default for this sidecar is from 2018.
	ImageNATSExporter = Image{Repository: "natsio/prometheus-nats-exporter", Tag: "0.15.0"}
)

// ImageJobSet is the controller of jobs with the engine jobset.
var ImageJobSet = Image{Repository: "registry.k8s.io/jobset/jobset", Tag: "v0.10.1"}

// The roles of a job, and the gateway to which they push metrics.
var (
	ImagePERSIACPU  = Image{Repository: "persiaml/persia-cpu-runtime", Tag: "latest"}
	ImagePERSIACUDA = Image{Repository: "persiaml/persia-cuda-runtime", Tag: "latest"}
	// ImagePushgateway also runs the completion of a job, with the BusyBox in the image.
	ImagePushgateway = Image{Repository: "prom/pushgateway", Tag: "v1.11.1"}
)

// ImageKueue is the last release for Kubernetes 1.34 that is a whole Go module.
var ImageKueue = Image{Repository: "registry.k8s.io/kueue/kueue", Tag: "v0.15.2"}

// ImagePython runs the script that asks for the nodes of queued provisioning.
var ImagePython = Image{Repository: "python", Tag: "3.13-alpine"}

// PEDL, its database, and the check of its nodes.
var (
	ImagePEDLMaster = Image{Repository: "determinedai/pedl-master"}
	ImagePEDLAgent  = Image{Repository: "determinedai/pedl-agent"}
	// ImagePostgreSQL is the last image of the chart's release 10. Bitnami has removed the chart's
	// own, docker.io/bitnami/postgresql:10.8.0 (bitnami/containers, issues 83267 and 96169).
	ImagePostgreSQL = Image{Repository: "docker.io/bitnamilegacy/postgresql", Tag: "10.23.0-debian-11-r3"}
	// Several public repositories record the digests of Docker and CUDA for these tags:
	// Dockerfiles and programs that pin docker:27-cli, and the output of `docker pull` and a
	// Dockerfile for nvidia/cuda.
	ImageDocker = Image{Repository: "docker", Tag: "27-cli", Digest: "sha256:851f91d241214e7c6db86513b270d58776379aacc5eb9c4a87e5b47115e3065c"}
	// ImageCUDA supports every driver since 2020. The node's Docker pulls it, without credentials
	// for Artifact Registry.
	ImageCUDA = Image{Repository: "nvidia/cuda", Tag: "11.8.0-base-ubuntu22.04", Digest: "sha256:f895871972c1c91eb6a896eee68468f40289395a1e58c492e1be7929d0f8703b"}
)

// The installers of the NVIDIA driver, as in GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer.
var (
	ImagePause           = Image{Repository: "gke.gcr.io/pause", Tag: "3.8", Digest: "sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"}
	ImageUbuntuInstaller = Image{Repository: "gke-nvidia-installer", Tag: "fixed"}
	ImageCOSInstaller    = Image{Repository: "cos-nvidia-installer", Tag: "fixed"}
	ImagePartitionGPU    = Image{Repository: "gcr.io/gke-release/nvidia-partition-gpu", Digest: "sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"}
)

// ImagesInStackNamespaces returns the images that pods in the namespaces of jobs and NATS run with
// any stack file.
func ImagesInStackNamespaces() []Image {
	return []Image{ImageNATSOperator, ImageNATSExporter, ImagePushgateway}
}

// DockerHub is the registry of images that name none.
const DockerHub = "docker.io"

// Images are the places from which nodes pull images.
type Images struct {
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
	Credentials *CacheCredentials `json:"credentials,omitempty"`

	created bool
}

// CacheCredentials are a user name and a secret in Secret Manager. The stack does not create
// the secret: grant Artifact Registry's service agent roles/secretmanager.secretAccessor
// on it.
type CacheCredentials struct {
	// Username is the name of the account.
	Username string `json:"username"`
	// PasswordSecret is the secret version that contains the account's password or access
	// token, in the form projects/P/secrets/S/versions/V.
	PasswordSecret string `json:"passwordSecret"`
}

// Resolve names the repositories that the stack creates.
func (s *Images) Resolve(stack *Stack) {
	for i := range s.Caches {
		if c := &s.Caches[i]; c.Repository == "" && !stack.existing() {
			c.created = true
			c.Repository = fmt.Sprintf("%s-docker.pkg.dev/%s/%s-docker-hub", stack.Cluster.Region, stack.Project, stack.Cluster.Name)
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
func (s Images) CachesDockerHub() bool {
	return slices.ContainsFunc(s.Caches, func(c Cache) bool { return c.Registry == DockerHub })
}

// Reference returns the reference by which nodes pull a public image.
func (s Images) Reference(image string) string {
	return s.through(image, func(Cache) bool { return true })
}

// PrivateReference returns the reference by which nodes pull an image that may need
// credentials. It uses only caches with credentials, because a cache ignores the pull secrets
// of pods.
func (s Images) PrivateReference(image string) string {
	return s.through(image, func(c Cache) bool { return c.Credentials != nil })
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
	// googleRegistry matches the hosts of Artifact Registry, which needs no cache.
	googleRegistry = regexp.MustCompile(`(^|\.)(gcr\.io|pkg\.dev)$`)
)

// multiRegions are the locations of Artifact Registry that span regions.
var multiRegions = []string{"us", "europe", "asia"}

// isNear reports whether a location of Artifact Registry has its images in a region.
func isNear(location, region string) bool {
	if location == "europe" {
		location = "EU" // as Cloud Storage calls it
	}
	return gcp.LocationHolds(strings.ToUpper(location), region)
}

// warnOfImageLocation warns of a location of Artifact Registry that may not exist, or is far from the
// region of a cluster. The region may be empty.
func warnOfImageLocation(p *input.Problems, path *field.Path, location, region string) {
	known := input.Known(p, path, location, "location of Artifact Registry", append(gcp.Regions(), multiRegions...), "`gcloud artifacts locations list`")
	if known && region != "" && !isNear(location, region) {
		p.Warn(path, "%s is far from the cluster in %s, so nodes pull slowly and the traffic is billed; use a repository in that region", location, region)
	}
}

// Check checks resolved settings.
func (s Images) Check(p *input.Problems, path *field.Path, stack *Stack) {
	caches := path.Child("caches")
	for i, c := range s.Caches {
		c.check(p, caches.Index(i), stack)
	}
	input.UniqueField(p, caches, "registry", s.Caches, func(c Cache) string { return c.Registry }, "is already used by caches[%d]; write one cache for each registry")
}

func (c Cache) check(p *input.Problems, path *field.Path, stack *Stack) {
	c.checkRegistry(p, path.Child("registry"))
	switch at := path.Child("repository"); {
	case c.Repository == "":
		p.Required(at, "write an existing remote repository as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY, because the stack creates nothing in Google Cloud on an existing cluster")
	case c.created && c.Registry != DockerHub && registryForm.MatchString(c.Registry):
		p.Required(at, "create one with `gcloud artifacts repositories create NAME --repository-format=docker --mode=remote-repository --remote-docker-repo=https://%s --location=%s`, and write it as %s-docker.pkg.dev/PROJECT/NAME: the stack can create a cache only for docker.io", c.Registry, stack.Cluster.Region, stack.Cluster.Region)
	case !c.created && !repositoryForm.MatchString(c.Repository):
		p.Invalid(at, c.Repository, "must be an Artifact Registry repository as LOCATION-docker.pkg.dev/PROJECT/REPOSITORY; `gcloud artifacts repositories list` lists yours")
	}
	if location := c.Location(); !c.created && repositoryForm.MatchString(c.Repository) {
		at := path.Child("repository")
		if !input.IsRegion(location) && !slices.Contains(multiRegions, location) {
			p.Invalid(at, c.Repository, "begins with %s, which is no location of Artifact Registry; write a region, like us-central1, or %s", location, input.Or(multiRegions))
		} else {
			warnOfImageLocation(p, at, location, stack.Cluster.Region)
		}
	}
	if at := path.Child("credentials"); c.Credentials != nil {
		if !c.created {
			p.Forbidden(at, "an existing repository has its own credentials; remove it, or remove repository")
		}
		c.Credentials.check(p, at)
	}
}

func (c Cache) checkRegistry(p *input.Problems, path *field.Path) {
	switch host, _, _ := strings.Cut(c.Registry, "/"); {
	case c.Registry == "":
		p.Required(path, "write the host of a registry, like docker.io")
	case host == "index.docker.io" || host == "registry-1.docker.io" || host == "hub.docker.com":
		p.Invalid(path, c.Registry, "is another name of Docker Hub; write docker.io")
	case googleRegistry.MatchString(host):
		p.Invalid(path, c.Registry, "is a registry of Google Cloud, which nodes pull from directly; remove the cache")
	case !registryForm.MatchString(c.Registry):
		p.Invalid(path, c.Registry, "must be the host of a registry, like docker.io, without scheme and path")
	}
}

func (c CacheCredentials) check(p *input.Problems, path *field.Path) {
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

// checkImage checks an image reference as the kubelet parses it. The message shows the example.
func checkImage(p *input.Problems, at *field.Path, image, example string) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		p.Invalid(at, image, "must be an image reference, like %s: %s", example, err)
		return
	}
	switch host := reference.Domain(named); {
	case host == "docker.pkg.dev", strings.HasSuffix(host, "-docker.pkg.dev") && strings.Count(reference.Path(named), "/") < 2:
		p.Invalid(at, image, "cannot be in Artifact Registry, whose images are LOCATION-docker.pkg.dev/PROJECT/REPOSITORY/IMAGE; write all four parts")
	case ownNode.MatchString(host):
		p.Warn(at, "%s is in a registry on each node itself, where nothing of the stack runs one; push the image to Artifact Registry, and write its name there", image)
	}
}

// ownNode matches the hosts by which a machine reaches itself.
var ownNode = regexp.MustCompile(`^(localhost|127\.[0-9.]+)(:[0-9]+)?$`)

// neverPulled warns of the pull policy Never.
const neverPulled = "Never starts only images that are on the disk of a node already, and new nodes have none; write IfNotPresent"

// isLooseImage reports whether an image reference may name another image tomorrow, because it has
// no digest and no tag other than latest.
func isLooseImage(image string) bool {
	_, tag, tagged := strings.Cut(path.Base(image), ":")
	return !strings.Contains(image, "@") && (!tagged || tag == "latest")
}

// checkPullSecrets checks the names of Secrets with registry credentials.
func checkPullSecrets(p *input.Problems, path *field.Path, secrets []corev1.LocalObjectReference) {
	for i, secret := range secrets {
		p.Name(path.Index(i).Child("name"), secret.Name, validation.IsDNS1123Subdomain)
	}
	input.UniqueField(p, path, "name", secrets, func(s corev1.LocalObjectReference) string { return s.Name }, "is the same as [%d]; write each Secret once")
}

// mostUncached is the number of nodes that pull from Docker Hub without a warning. Docker
// Hub allows 100 anonymous pulls per address in six hours ("Docker Hub usage and limits"),
// and nodes behind Cloud NAT share few addresses.
const mostUncached = 50

// warnOfImages warns of images that nodes may not pull, or pull slowly. It leaves out existing
// clusters, because the stack file does not say where their nodes are.
func (s *Stack) warnOfImages(p *input.Problems) {
	if s.Cluster.Existing != nil {
		return
	}
	s.warnOfImage(p, field.NewPath(natsKey, "image"), s.NATS.Image)
	s.warnOfImage(p, field.NewPath(operatorKey, "image"), s.Operator.Image)
	for i := range s.Jobs {
		at := s.Jobs[i].At()
		for _, role := range s.Jobs[i].Roles() {
			s.warnOfImage(p, at.Child(role.Field, "image"), role.Image)
		}
		for k, volume := range s.Jobs[i].Volumes {
			if volume.Image != nil {
				s.warnOfImage(p, at.Child("volumes").Index(k).Child("image", "reference"), volume.Image.Reference)
			}
		}
	}
	if pedl := s.PEDL; pedl != nil {
		at, database := field.NewPath(pedlKey), pedl.Postgres.Image
		s.warnOfImage(p, at.Child("masterImage"), pedl.MasterImage)
		s.warnOfImage(p, at.Child("agentImage"), pedl.AgentImage)
		s.warnOfImage(p, at.Child("postgresql", "image", "registry"), database.Registry+"/"+database.Repository)
	}
	nodes := s.addresses().Nodes
	if nodes <= mostUncached || s.Images.CachesDockerHub() {
		return
	}
	p.Warn(field.NewPath(imagesKey), "up to %d nodes pull from Docker Hub through the addresses of one NAT, and Docker Hub allows 100 anonymous pulls per address in six hours; write {caches: [{registry: docker.io}]} to pull through Artifact Registry", nodes)
}

// artifactRegistry matches images in Artifact Registry: their location and project. The names
// of Container Registry lead there too (Artifact Registry, "Transition from Container Registry").
var artifactRegistry = regexp.MustCompile(`^(?:([a-z0-9-]+)-docker\.pkg\.dev|(?:(us|eu|asia)\.)?gcr\.io)/([^/]+)/`)

// imageLocation returns the location and the project of an image in Artifact Registry.
func imageLocation(image string) (location, project string, ok bool) {
	of := artifactRegistry.FindStringSubmatch(image)
	if of == nil {
		return "", "", false
	}
	old := map[string]string{"": "us", "us": "us", "eu": "europe", "asia": "asia"}
	return cmp.Or(of[1], old[of[2]]), of[3], true
}

// warnOfImage warns of an image in Artifact Registry that is far away, or in a project in
// which the nodes have no rights.
func (s *Stack) warnOfImage(p *input.Problems, path *field.Path, image string) {
	location, project, ok := imageLocation(image)
	if !ok {
		return
	}
	warnOfImageLocation(p, path, location, s.Cluster.Region)
	if project != s.Project {
		p.Warn(path, "%s is in the project %s, and unless it is public, nodes may not pull it; grant %s-nodes@%s.iam.gserviceaccount.com roles/artifactregistry.reader there", image, project, s.Cluster.Name, s.Project)
	}
}
