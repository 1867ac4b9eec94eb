package jobspec

import (
	"regexp"

	"persia/config/catalog"
)

// Kind is one of the four roles of every job: the one place for its names, its image,
// its port and its priority.
type Kind struct {
	// Field is the role's name in a stack file and in a PersiaJob.
	Field string
	// Name ends the names of the role's objects, as upstream's pods are named.
	Name string
	// Command is the sub-command of persia-launcher.
	Command string
	// Older is the role's name in the script of releases without persia-launcher.
	Older string
	// DefaultImage is upstream's runtime image (k8s/src/crd.rs in PersiaML/PERSIA). Upstream
	// has published no other tag: a stack that must be repeatable names a digest.
	DefaultImage string
	// Port is where the role listens, or 0.
	Port int
	// Server says that the role takes connections of other roles, and is ready when it
	// does.
	Server bool
	// SharedMemory says that the processes of a replica exchange data through memory:
	// those of NCCL, and the workers of PyTorch's DataLoader.
	SharedMemory bool
	Priority     Priority

	of func(*Job) *Role
}

// Of is the role of a job.
func (k Kind) Of(j *Job) *Role { return k.of(j) }

// newerGPU matches the GPUs that PyTorch 1.8 has no kernels for, by their names at
// Compute Engine: its kernels end with compute capability 8.x, and H100 (Hopper) has 9.0.
var newerGPU = regexp.MustCompile(`^nvidia-(h[0-9]|gh[0-9]|b[0-9]|gb[0-9]|rtx-pro-)`)

// DefaultImageComputesOn reports whether upstream's image of the trainers, which has
// PyTorch 1.8, computes on a type of GPU.
func DefaultImageComputesOn(gpuType string) bool { return !newerGPU.MatchString(gpuType) }

// MasterPort is where the processes of torch.distributed meet.
const MasterPort = 23456

// The kinds of roles.
var (
	KindDataloader = Kind{
		Field: "dataloader", Name: "dataloader", Command: "data-loader", Older: "datacompose", DefaultImage: catalog.PERSIACPU.Reference(),
		SharedMemory: true, Priority: PriorityDataloader,
		of: func(j *Job) *Role { return &j.Dataloader },
	}
	KindEmbeddingWorker = Kind{
		Field: "embeddingWorker", Name: "embedding-worker", Command: "embedding-worker", Older: "middleware", DefaultImage: catalog.PERSIACPU.Reference(),
		Port: 8887, Server: true, Priority: PriorityEmbeddingWorker,
		of: func(j *Job) *Role { return &j.EmbeddingWorker },
	}
	KindEmbeddingParameterServer = Kind{
		Field: "embeddingParameterServer", Name: "embedding-ps", Command: "embedding-parameter-server", Older: "embserver", DefaultImage: catalog.PERSIACPU.Reference(),
		Port: 8888, Server: true, Priority: PriorityEmbeddingParameterServer,
		of: func(j *Job) *Role { return &j.EmbeddingParameterServer },
	}
	KindNNWorker = Kind{
		Field: "nnWorker", Name: "nn-worker", Command: "nn-worker", Older: "trainer", DefaultImage: catalog.PERSIACUDA.Reference(),
		Port: MasterPort, SharedMemory: true, Priority: PriorityNNWorker,
		of: func(j *Job) *Role { return &j.NNWorker.Role },
	}
)

// Kinds are the four roles, in the order of a stack file.
func Kinds() []Kind {
	return []Kind{KindNNWorker, KindDataloader, KindEmbeddingWorker, KindEmbeddingParameterServer}
}

// NamedRole is a role of a job and of which kind it is.
type NamedRole struct {
	Kind
	*Role
}

// Roles are those of a job, in the order of a stack file.
func (j *Job) Roles() []NamedRole {
	var roles []NamedRole
	for _, kind := range Kinds() {
		roles = append(roles, NamedRole{kind, kind.of(j)})
	}
	return roles
}
