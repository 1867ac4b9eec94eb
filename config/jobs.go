package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/jobspec"
	"persia/config/pod"
	"persia/gcp"
)

func (s *Stack) jobContext() jobspec.Context {
	context := jobspec.Context{Volumes: s.jobVolumes(), StorageKey: storageKey, Created: s.Cluster.Existing == nil, OneNode: s.Cluster.Existing == nil && s.addresses().Nodes == 1}
	for _, pool := range s.Pools() {
		context.Pools = append(context.Pools, jobspec.Pool{Name: pool.Name, KeepsOff: keepsOff(pool), GPUs: pool.GPU != nil, COS: pool.ImageType == gcp.ImageCOS})
	}
	return context
}

// checkJobs checks the jobs, and that each role fits a node of its pool.
func (s *Stack) checkJobs(p *check.Problems) {
	context := s.jobContext()
	context.VolumesUnknown = !p.Decoded(field.NewPath(storageKey))
	jobspec.Check(p, s.Jobs, context)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for _, role := range j.Roles() {
			at := j.At().Child(role.Field)
			checkPool := s.checkPool
			if takesQueued(j, role.Kind) {
				checkPool = s.checkPoolOrQueued
			}
			if pool, ok := s.checkAssigned(p, at, role.Field, role.NodePool, role.Resources, s.rolePools(), checkPool); ok {
				s.checkGPUs(p, at.Child("resources"), role.Field, role.Resources, pool)
				s.checkOpenCheckpoint(p, j.At().Child("hashmapShards"), j, role, pool)
			}
		}
		s.checkServiceNames(p, j)
	}
}

// checkServiceNames checks that no Service of a job has the name of a Service of NATS. The
// Services of two jobs differ, because the names of the jobs do, and no suffix ends with
// another one.
func (s *Stack) checkServiceNames(p *check.Problems, j *jobspec.Job) {
	for _, cluster := range s.NATSClusters() {
		for _, service := range j.Services() {
			if service == cluster.Name || service == cluster.Name+"-mgmt" {
				p.Invalid(j.At().Child("name"), j.Name, "creates the Service %s, which %s creates too; rename one of them", service, cluster.NamePath(field.NewPath(natsKey)))
			}
		}
	}
}

// uses reports whether a job of the stack has an engine.
func (s *Stack) uses(engine jobspec.Engine) bool {
	return slices.ContainsFunc(s.Jobs, func(j jobspec.Job) bool { return j.Engine == engine })
}

// UsesOperator reports whether PERSIA's operator runs a job of the stack.
func (s *Stack) UsesOperator() bool { return s.uses(jobspec.EngineOperator) }

// InstallsJobSet reports whether the stack brings the controller of its JobSets. Kueue needs
// the definition of JobSets, too.
func (s *Stack) InstallsJobSet() bool {
	return !s.Queue.Existing && (s.HasQueues() || s.uses(jobspec.EngineJobSet))
}

// InstallsKueue reports whether the stack brings the controller of its queues.
func (s *Stack) InstallsKueue() bool { return s.HasQueues() && !s.Queue.Existing }

// MountsHostPaths reports whether a job has hostPath volumes.
func (s *Stack) MountsHostPaths() bool {
	return slices.ContainsFunc(s.Jobs, func(j jobspec.Job) bool { return j.MountsHostPaths() })
}

func (s *Stack) warnOfJobs(p *check.Problems) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Warn(p, storageKey)
		// An empty image is upstream's.
		pool, ok := s.Pool(j.NNWorker.NodePool)
		if ok && pool.GPU != nil && j.NNWorker.Image == "" && pod.GPUs(j.NNWorker.Resources) > 0 && !jobspec.DefaultImageComputesOn(pool.GPU.Type) {
			p.Warn(j.At().Child("nnWorker", "image"), "the default image contains PyTorch 1.8, which does not support %s; write an image with a PyTorch version that does", pool.GPU.Type)
		}
	}
}

// spotGrace is how many seconds pods have on a machine that Google preempts (GKE, "Spot VMs",
// "Termination and graceful shutdown of Spot VMs").
const spotGrace = 15

// warnOfSpot warns of the work that a job loses when Google preempts a machine.
func (s *Stack) warnOfSpot(p *check.Problems) {
	for _, c := range s.NATSClusters() {
		if pool, _ := s.Pool(c.NodePool); pool.Spot {
			p.Warn(c.PoolPath(field.NewPath(natsKey)), "pool %s has spot machines, and each time Google preempts one with a NATS server, jobs lose their connections; choose a pool without spot", pool.Name)
		}
	}
	if s.PEDL != nil {
		if pool, _ := s.Pool(s.PEDL.NodePool); pool.Spot {
			p.Warn(field.NewPath(pedlKey, "nodePool"), "pool %s has spot machines, and each time Google preempts one, PEDL is down; choose a pool without spot", pool.Name)
		}
	}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			at, seconds := s.Jobs[i].At().Child(role.Field, "terminationGracePeriodSeconds"), role.TerminationGracePeriodSeconds
			if pool, _ := s.Pool(role.NodePool); pool.Spot && seconds > jobspec.UsualGrace {
				p.Warn(at, "pool %s has spot machines, whose pods have %d s to end when Google preempts one, not %d; save checkpoints more often, or choose a pool without spot", pool.Name, spotGrace, seconds)
			}
		}
		if pool, _ := s.Pool(s.Jobs[i].EmbeddingParameterServer.NodePool); pool.Spot {
			p.Warn(s.Jobs[i].At().Child("embeddingParameterServer", "nodePool"), "pool %s has spot machines, and each time Google preempts one, the job loses its embeddings since the last checkpoint; choose a pool without spot", pool.Name)
		}
	}
}
