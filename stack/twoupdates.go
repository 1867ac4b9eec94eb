package stack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/stack/effects"
)

// checkOrder refuses edits that need two updates. Pulumi deletes what is no longer in the stack file
// only after it has created the rest, and it waits for NATS servers and for the pods of all engines but
// JobSet. Pods that need the room of a deleted job would wait until the update fails.
func checkOrder(cfg *config.Stack, plan capacity.Plan, before effects.Stack) error {
	var problems []error
	leaving := maps.Clone(before.Jobs)
	for i := range cfg.Jobs {
		job := &cfg.Jobs[i]
		was, had := before.Jobs[job.Name]
		delete(leaving, job.Name)
		// The guard of a job of PERSIA's operator waits for all pods of the job, also for its completion.
		if had && was.Engine() != job.Engine && (job.Engine == config.EngineOperator || was.Replicas() > 0 && !job.Suspend) {
			problems = append(problems, fmt.Errorf("%s: Invalid value: %q: the job %s has engine: %s in the cluster, and Pulumi would create its new pods before it deletes the old ones; %s",
				job.At().Child("engine"), job.Engine, job.Name, was.Engine(), inTwoUpdates))
		}
	}
	problems = append(problems, checkReserved(cfg, before))
	clusters := cfg.NATSClusters()
	for i := range cfg.Jobs {
		job := &cfg.Jobs[i]
		starts := startsOn(job, clusters[i], before)
		for _, pool := range plan.Pools {
			leaves, of := leavingPods(pool.Pool, job, clusters, leaving, before)
			together := pool.Pool
			together.Pods = slices.Concat(pool.Pods, leaves)
			if starts[pool.Name] && len(leaves) > 0 && together.Needed() > pool.Nodes {
				gone := slices.DeleteFunc(slices.Clone(of), func(name string) bool { return !strings.HasPrefix(name, "the job ") })
				problems = append(problems, fmt.Errorf("%[1]s: the job %[2]s does not fit on the pool %[3]s beside %[4]s, "+
					"which Pulumi deletes only when the pods of %[2]s are ready; make two updates: first remove only %[5]s from the stack file, and run `pulumi up`; then make the other changes, and run it again",
					job.At(), job.Name, pool.Name, strings.Join(of, ", "), cmp.Or(strings.Join(gone, ", "), "the job "+job.Name)))
				break
			}
			problems = append(problems, checkGrowing(cfg, job, before.Jobs[job.Name], together))
		}
	}
	return errors.Join(problems...)
}

// checkReserved refuses nodes that need machines of a reservation that a leaving pool still has.
func checkReserved(cfg *config.Stack, before effects.Stack) error {
	for _, old := range before.Leaving(cfg.Pools()) {
		for _, pool := range cfg.Pools() {
			if old.Reservation != "" && pool.Reservation == old.Reservation && before.Grows(pool) {
				return fmt.Errorf("%s: Invalid value: %q: the nodes of %s would wait for the machines of the pool %s, which Pulumi deletes only when they are there; "+
					"keep the name %s, or remove both pools and the jobs on them, run `pulumi up`, then write %s and the jobs again and run it again",
					cfg.PoolPath(pool.Name).Child("reservation"), pool.Reservation, pool.Name, old.Name, old.Name, pool.Name)
			}
		}
	}
	return nil
}

// startsOn returns the pools on which an update waits for pods of a job, or of its NATS, that need more room than
// what they replace. The pods of a JobSet may wait until the end of the update.
func startsOn(job *config.Job, cluster config.NATSCluster, before effects.Stack) map[string]bool {
	old, had := before.NATS[cluster.Name]
	starts := map[string]bool{cluster.NodePool: !had || old.Pool != cluster.NodePool || old.Size < cluster.Size}
	for _, role := range job.Roles() {
		if job.Suspend || job.Engine == config.EngineJobSet || role.Replicas == 0 {
			continue
		}
		was := before.Jobs[job.Name].Roles[role.Name]
		stays := was.Replicas >= role.Replicas && cmp.Or(was.Pod.NodeSelector[gcp.LabelNodePool], role.NodePool) == role.NodePool
		sidecar, _ := job.GCSFuseSidecar(role.Kind)
		now := config.PodRequests(role.Resources).Plus(sidecar)
		starts[role.NodePool] = starts[role.NodePool] || !stays || !now.Within(requestsOf(was, role, job, before))
	}
	return starts
}

// requestsOf returns the requests of a pod in the state. The sidecar that GKE adds for a bucket counts as that of the
// same role of a job in the stack file.
func requestsOf(was effects.Role, role config.NamedRole, job *config.Job, before effects.Stack) capacity.Resources {
	requests := config.PodRequests(was.Pod.Containers[0].Resources)
	for _, volume := range was.Pod.Volumes {
		for _, of := range before.Volumes {
			if claim := volume.PersistentVolumeClaim; claim != nil && claim.ClaimName == of.Claim && strings.HasPrefix(of.Storage, "gs://") {
				sidecar, _ := job.GCSFuseSidecar(role.Kind)
				return requests.Plus(sidecar)
			}
		}
	}
	return requests
}

// checkGrowing refuses to add replicas and change their requests at once, if the new ones do not fit beside all
// old ones: Kubernetes creates those that are new first, and waits for them before it replaces any other.
func checkGrowing(cfg *config.Stack, job *config.Job, was effects.Job, pool capacity.Pool) error {
	var problems []error
	for _, role := range job.Roles() {
		had := was.Roles[role.Name]
		if job.Engine != config.EngineStatefulSet || job.Suspend || had.Replicas == 0 || had.Replicas >= role.Replicas ||
			role.NodePool != pool.Name || had.Pod.NodeSelector[gcp.LabelNodePool] != pool.Name {
			continue
		}
		sidecar, _ := job.GCSFuseSidecar(role.Kind)
		now := config.PodRequests(role.Resources).Plus(sidecar)
		old := capacity.Pods{Count: had.Replicas, Requests: config.PodRequests(had.Pod.Containers[0].Resources).Plus(sidecar), Priority: role.Priority.Value}
		together := pool
		together.Pods = append(slices.Clone(pool.Pods), old)
		for i := range pool.Pods {
			if together.Pods[i].Requests == now && together.Pods[i].Priority == old.Priority {
				together.Pods[i].Count -= had.Replicas
				break
			}
		}
		together.Pods = slices.DeleteFunc(together.Pods, func(p capacity.Pods) bool { return p.Count == 0 })
		if old.Requests != now && pool.Holds(old) > 0 && together.Needed() > pool.Nodes {
			problems = append(problems, fmt.Errorf("%s: Invalid value: %d: the new replicas do not fit on the pool %s beside the %d old ones, which Kubernetes replaces only when the new ones are ready; "+
				"write %d with the new resources, run `pulumi up`, then write %d and run it again",
				job.At().Child(role.Field, "replicas"), role.Replicas, pool.Name, had.Replicas, had.Replicas, role.Replicas))
		}
	}
	return errors.Join(problems...)
}

const inTwoUpdates = "remove the job from the stack file, run `pulumi up`, then write the job again and run it again"

// leavingPods returns the pods on a pool of what an update deletes, and its names. PERSIA's operator
// chooses no nodes, so its pods count where the job that starts has its own.
func leavingPods(pool capacity.Pool, starts *config.Job, clusters []config.NATSCluster, leaving map[string]effects.Job, before effects.Stack) (pods []capacity.Pods, of []string) {
	add := func(on, name string, p capacity.Pods) {
		// Pods that no node can hold are on nodes that give way.
		if on == pool.Name && p.Count > 0 && pool.Holds(p) > 0 {
			pods, of = append(pods, p), append(of, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(leaving)) {
		for _, role := range starts.Roles() {
			if was := leaving[name].Roles[role.Name]; was.Replicas > 0 {
				add(cmp.Or(was.Pod.NodeSelector[gcp.LabelNodePool], role.NodePool), "the job "+name,
					capacity.Pods{Count: was.Replicas, Requests: requestsOf(was, role, starts, before), Priority: role.Priority.Value})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.NATS)) {
		if was := before.NATS[name]; !slices.ContainsFunc(clusters, func(c config.NATSCluster) bool { return c.Name == name }) {
			add(was.Pool, "the NATS cluster "+name,
				capacity.Pods{Count: was.Size, Requests: clusters[0].Requests(), Priority: config.PriorityNATS.Value, Apart: clusters[0].AntiAffinity})
		}
	}
	return pods, slices.Compact(of)
}
