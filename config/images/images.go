// Package images lists the container images that the program chooses. The stack file names
// all others.
package images

// Image is a container image.
type Image struct {
	Repository, Tag, Digest string
	// ByTag is the reason why the image has no digest.
	ByTag string
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

// The reasons for images without a digest. The list takes a digest only from two
// independent public sources.
const (
	noSource = "no two public sources record its digest"
	onDisk   = "on the disk of GKE's nodes, which never pull it"
	// ChosenByFile is for images whose version is a separate setting of the stack file.
	ChosenByFile = "the stack file sets its version"
)

// The NATS operator, the servers that it runs, and their sidecars.
var (
	// NATSOperator is the last release, and the first that supports Kubernetes 1.22 and later.
	NATSOperator = Image{Repository: "natsio/nats-operator", Tag: "0.8.3", ByTag: noSource}
	// NATSServer is the default of persia:nats (package natsspec).
	NATSServer = Image{Repository: "nats", Tag: "2.10.22", ByTag: ChosenByFile}
	// The operator's own defaults for these sidecars are from 2018.
	NATSReloader = Image{Repository: "natsio/nats-server-config-reloader", Tag: "0.16.0", ByTag: noSource}
	NATSExporter = Image{Repository: "natsio/prometheus-nats-exporter", Tag: "0.15.0", ByTag: noSource}
)

// JobSet is the controller of jobs with the engine jobset.
var JobSet = Image{Repository: "registry.k8s.io/jobset/jobset", Tag: "v0.10.1", ByTag: noSource}

// The roles of a job, and the gateway to which they push metrics.
var (
	PERSIACPU  = Image{Repository: "persiaml/persia-cpu-runtime", Tag: "latest", ByTag: "upstream has published no other tag; `make preflight` asks for a digest"}
	PERSIACUDA = Image{Repository: "persiaml/persia-cuda-runtime", Tag: "latest", ByTag: "upstream has published no other tag; `make preflight` asks for a digest"}
	// Pushgateway also runs the completion of a job, with the BusyBox in the image.
	Pushgateway = Image{Repository: "prom/pushgateway", Tag: "v1.11.1", ByTag: noSource}
)

// Kueue is the last release for Kubernetes 1.34 that is a whole Go module.
var Kueue = Image{Repository: "registry.k8s.io/kueue/kueue", Tag: "v0.15.2", ByTag: noSource}

// Python runs the script that asks for the nodes of queued provisioning.
var Python = Image{Repository: "python", Tag: "3.13-alpine", ByTag: noSource}

// PEDL, its database, and the check of its nodes.
var (
	PEDLMaster = Image{Repository: "determinedai/pedl-master", ByTag: ChosenByFile}
	PEDLAgent  = Image{Repository: "determinedai/pedl-agent", ByTag: ChosenByFile}
	// PostgreSQL is the last image of the chart's release 10. Bitnami has removed the chart's
	// own, docker.io/bitnami/postgresql:10.8.0 (bitnami/containers, issues 83267 and 96169).
	PostgreSQL = Image{Repository: "docker.io/bitnamilegacy/postgresql", Tag: "10.23.0-debian-11-r3", ByTag: ChosenByFile}
	// Several public repositories record the digests of Docker and CUDA for these tags:
	// Dockerfiles and programs that pin docker:27-cli, and the output of `docker pull` and a
	// Dockerfile for nvidia/cuda.
	Docker = Image{Repository: "docker", Tag: "27-cli", Digest: "sha256:851f91d241214e7c6db86513b270d58776379aacc5eb9c4a87e5b47115e3065c"}
	// CUDA supports every driver since 2020. The node's Docker pulls it, without credentials
	// for Artifact Registry.
	CUDA = Image{Repository: "nvidia/cuda", Tag: "11.8.0-base-ubuntu22.04", Digest: "sha256:f895871972c1c91eb6a896eee68468f40289395a1e58c492e1be7929d0f8703b"}
)

// The installers of the NVIDIA driver, as in GoogleCloudPlatform/container-engine-accelerators,
// nvidia-driver-installer.
var (
	Pause           = Image{Repository: "gke.gcr.io/pause", Tag: "3.8", Digest: "sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"}
	UbuntuInstaller = Image{Repository: "gke-nvidia-installer", Tag: "fixed", ByTag: onDisk}
	COSInstaller    = Image{Repository: "cos-nvidia-installer", Tag: "fixed", ByTag: onDisk}
	PartitionGPU    = Image{Repository: "gcr.io/gke-release/nvidia-partition-gpu", Digest: "sha256:de12f85ebfb4fb6c1893cd30c23aab662a72fa0448f97ef74fccb82d7522ef17"}
)

// InStackNamespaces returns the images that pods in the namespaces of jobs and NATS run with
// any stack file.
func InStackNamespaces() []Image {
	return []Image{NATSOperator, NATSReloader, NATSExporter, Pushgateway}
}

// All returns all images that the program chooses.
func All() []Image {
	return []Image{
		NATSOperator, NATSServer, NATSReloader, NATSExporter,
		JobSet, Kueue, Python,
		PERSIACPU, PERSIACUDA, Pushgateway,
		PEDLMaster, PEDLAgent, PostgreSQL, Docker, CUDA,
		Pause, UbuntuInstaller, COSInstaller, PartitionGPU,
	}
}
