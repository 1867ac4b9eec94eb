package jobspec

// Priority is a PriorityClass: where there is too little room for all pods, those
// of a higher one take that of others.
//
// The larger a role's replicas are, the higher its priority: whatever order pods
// come in, the large ones get their nodes, and the small ones fill what is left.
type Priority struct {
	// Name is the PriorityClass's.
	Name        string
	Value       int
	Description string
}

// The priorities of a stack's pods. Without one a pod has 0.
var (
	PriorityNATS                     = Priority{"persia-nats", 1000, "NATS servers, which every role needs"}
	PriorityEmbeddingParameterServer = Priority{"persia-embedding-ps", 900, "embedding parameter servers of PERSIA"}
	PriorityNNWorker                 = Priority{"persia-nn-worker", 800, "trainers of PERSIA"}
	PriorityEmbeddingWorker          = Priority{"persia-embedding-worker", 700, "embedding workers of PERSIA"}
	PriorityDataloader               = Priority{"persia-dataloader", 600, "data loaders of PERSIA"}
)

// Priorities are all of them.
func Priorities() []Priority {
	return []Priority{PriorityNATS, PriorityEmbeddingParameterServer, PriorityNNWorker, PriorityEmbeddingWorker, PriorityDataloader}
}
