package config

// JobLabel is the label of the pods of a job, whose value is its name. Upstream's tools find the pods by it.
const JobLabel = "persia_job"

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
	// DefaultImage is upstream's runtime image (k8s/src/crd.rs in PersiaML/PERSIA). Upstream has published only one tag.
	DefaultImage string
	// Port is the port on which the role listens, or 0.
	Port int
	// Server is true if the role accepts connections of other roles, and is ready when it does.
	Server bool
	// SharedMemory is true if processes of a replica exchange data through memory, as NCCL
	// and the workers of PyTorch's DataLoader do.
	SharedMemory bool
	Priority     Priority

	of func(*Job) *Role
}

// Of returns the role of a job.
func (k Kind) Of(j *Job) *Role { return k.of(j) }

// MasterPort is the rendezvous port of torch.distributed.
const MasterPort = 23456

// The kinds of roles.
var (
	KindDataloader = Kind{
		Field: "dataloader", Name: "dataloader", Command: "data-loader", Older: "datacompose", DefaultImage: ImagePERSIACPU.Reference(),
		SharedMemory: true, Priority: PriorityDataloader,
		of: func(j *Job) *Role { return &j.Dataloader },
	}
	KindEmbeddingWorker = Kind{
		Field: "embeddingWorker", Name: "embedding-worker", Command: "embedding-worker", Older: "middleware",
		DefaultImage: ImagePERSIACPU.Reference(), Port: 8887, Server: true, Priority: PriorityEmbeddingWorker,
		of: func(j *Job) *Role { return &j.EmbeddingWorker },
	}
	KindEmbeddingParameterServer = Kind{
		Field: "embeddingParameterServer", Name: "embedding-ps", Command: "embedding-parameter-server", Older: "embserver",
		DefaultImage: ImagePERSIACPU.Reference(), Port: 8888, Server: true, Priority: PriorityEmbeddingParameterServer,
		of: func(j *Job) *Role { return &j.EmbeddingParameterServer },
	}
	KindNNWorker = Kind{
		Field: "nnWorker", Name: "nn-worker", Command: "nn-worker", Older: "trainer", DefaultImage: ImagePERSIACUDA.Reference(),
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

// Priority is a PriorityClass: if there is not enough room, pods of a higher priority evict pods of a lower one.
//
// Roles with larger replicas have higher priorities. So large pods get their nodes in any
// order of creation, and small pods fill the rest.
type Priority struct {
	Name        string
	Value       int
	Description string
}

// The priorities of a stack's pods. Other pods have 0.
var (
	PriorityNATS                     = Priority{"persia-nats", 1000, "NATS servers, which every role needs"}
	PriorityEmbeddingParameterServer = Priority{"persia-embedding-ps", 900, "embedding parameter servers of PERSIA"}
	PriorityNNWorker                 = Priority{"persia-nn-worker", 800, "nn-workers of PERSIA"}
	PriorityEmbeddingWorker          = Priority{"persia-embedding-worker", 700, "embedding workers of PERSIA"}
	PriorityDataloader               = Priority{"persia-dataloader", 600, "dataloaders of PERSIA"}
)

// Priorities returns all priorities.
func Priorities() []Priority {
	return []Priority{PriorityNATS, PriorityEmbeddingParameterServer, PriorityNNWorker, PriorityEmbeddingWorker, PriorityDataloader}
}
