package jobspec

import corev1 "k8s.io/api/core/v1"

// checkpointWriters is how many files of a checkpoint an embedding parameter server writes
// at the same time (persia-model-manager in PersiaML/PERSIA).
const checkpointWriters = 4

// OpenCheckpointBytes is how much of a checkpoint a replica of a role writes at the same time:
// an embedding parameter server has its memory in HashmapShards parts, and writes each of
// them to a file. How large the dense part of a model is, which trainers write, is not known.
func (j *Job) OpenCheckpointBytes(kind Kind) int64 {
	if kind.Field != KindEmbeddingParameterServer.Field || j.HashmapShards < 1 {
		return 0
	}
	resources := j.EmbeddingParameterServer.Resources
	memory, ok := resources.Limits[corev1.ResourceMemory]
	if !ok {
		memory = resources.Requests[corev1.ResourceMemory]
	}
	return memory.Value() / int64(j.HashmapShards) * min(checkpointWriters, int64(j.HashmapShards))
}
