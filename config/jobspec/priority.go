package jobspec

// Priority is a PriorityClass: if there is not enough room, pods of a higher priority evict
// pods of a lower one.
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
