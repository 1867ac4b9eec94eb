package jobspec

import (
	corev1 "k8s.io/api/core/v1"

	"persia/config/pod"
)

// checkpointWriters is the number of checkpoint files that an embedding parameter server
// writes at the same time (persia-model-manager in PersiaML/PERSIA).
const checkpointWriters = 4

// OpenCheckpointBytes returns the size of the checkpoint files that a replica of a role writes
// at the same time. An embedding parameter server writes its memory in HashmapShards files.
// For other roles it returns 0: the size of the dense model, which nn-workers write, is unknown.
func (j *Job) OpenCheckpointBytes(kind Kind) int64 {
	if kind.Field != KindEmbeddingParameterServer.Field || j.HashmapShards < 1 {
		return 0
	}
	memory, _, _ := pod.Limit(nil, j.EmbeddingParameterServer.Resources, corev1.ResourceMemory)
	return memory.Value() / int64(j.HashmapShards) * min(checkpointWriters, int64(j.HashmapShards))
}
