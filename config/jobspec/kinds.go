package jobspec

import (
	"regexp"

	"persia/config/images"
)

// Label is the label of the pods of a job, whose value is its name. Upstream's tools find the pods by it.
const Label = "persia_job"

// Kind describes one of the four roles that every job has.
type Kind struct {
	// Field is the role's name in a stack file and in a PersiaJob.
	Field string
	// Name is the suffix of the names of the role's objects, like in upstream's pods.
	Name string
	// Command is the subcommand of persia-launcher.
	Command string
	// Older is the role's name in the script of releases without persia-launcher.
	Older string
	// DefaultImage is upstream's runtime image (k8s/src/crd.rs in PersiaML/PERSIA). Upstream
	// has published only one tag.
	DefaultImage string
	// Port is the port on which the role listens, or 0.
	Port int
	// Server is true if the role accepts connections of other roles, and is ready when it
	// does.
	Server bool
	// SharedMemory is true if processes of a replica exchange data through memory, as NCCL
	// and the workers of PyTorch's DataLoader do.
	SharedMemory bool
	Priority     Priority

	of func(*Job) *Role
}

// Of returns the role of a job.
func (k Kind) Of(j *Job) *Role { return k.of(j) }

// newerGPU matches Compute Engine's names of the GPUs that PyTorch 1.8 does not support: it
// has kernels up to compute capability 8.x, and H100 (Hopper) has 9.0.
var newerGPU = regexp.MustCompile(`^nvidia-(h[0-9]|gh[0-9]|b[0-9]|gb[0-9]|rtx-pro-)`)

// DefaultImageComputesOn reports whether the default image of nn-workers, which contains
// PyTorch 1.8, supports a type of GPU.
func DefaultImageComputesOn(gpuType string) bool { return !newerGPU.MatchString(gpuType) }

// MasterPort is the rendezvous port of torch.distributed.
const MasterPort = 23456

// The kinds of roles.
var (
	KindDataloader = Kind{
		Field: "dataloader", Name: "dataloader", Command: "data-loader", Older: "datacompose", DefaultImage: images.PERSIACPU.Reference(),
		SharedMemory: true, Priority: PriorityDataloader,
		of: func(j *Job) *Role { return &j.Dataloader },
	}
	KindEmbeddingWorker = Kind{
		Field: "embeddingWorker", Name: "embedding-worker", Command: "embedding-worker", Older: "middleware", DefaultImage: images.PERSIACPU.Reference(),
		Port: 8887, Server: true, Priority: PriorityEmbeddingWorker,
		of: func(j *Job) *Role { return &j.EmbeddingWorker },
	}
	KindEmbeddingParameterServer = Kind{
		Field: "embeddingParameterServer", Name: "embedding-ps", Command: "embedding-parameter-server", Older: "embserver", DefaultImage: images.PERSIACPU.Reference(),
		Port: 8888, Server: true, Priority: PriorityEmbeddingParameterServer,
		of: func(j *Job) *Role { return &j.EmbeddingParameterServer },
	}
	KindNNWorker = Kind{
		Field: "nnWorker", Name: "nn-worker", Command: "nn-worker", Older: "trainer", DefaultImage: images.PERSIACUDA.Reference(),
		Port: MasterPort, SharedMemory: true, Priority: PriorityNNWorker,
		of: func(j *Job) *Role { return &j.NNWorker.Role },
	}
)

// Kinds returns the four kinds of roles, in the order of a stack file.
func Kinds() []Kind {
	return []Kind{KindNNWorker, KindDataloader, KindEmbeddingWorker, KindEmbeddingParameterServer}
}

// NamedRole is a role of a job with its kind.
type NamedRole struct {
	Kind
	*Role
}

// Roles returns the roles of a job, in the order of a stack file.
func (j *Job) Roles() []NamedRole {
	var roles []NamedRole
	for _, kind := range Kinds() {
		roles = append(roles, NamedRole{kind, kind.of(j)})
	}
	return roles
}
