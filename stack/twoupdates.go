package stack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/stack/effects"
)

// checkOrder refuses edits that need two updates. Pulumi deletes what is no longer in the stack file only after it has
// created the rest, and it waits for NATS servers and for the pods of all engines but JobSet. Pods that need the room
// of a deleted job would wait until the update fails.
func checkOrder(cfg *config.Stack, plan capacity.Plan, before effects.State) error {
	leaving := effects.State{Trainings: maps.Clone(before.Trainings), Brokers: maps.Clone(before.Brokers)}
	broker := map[string]config.NATSCluster{} // by job
	for _, cluster := range cfg.NATSClusters() {
		broker[cluster.Job] = cluster
		delete(leaving.Trainings, cluster.Job)
		delete(leaving.Brokers, cluster.Name)
	}
	problems := []error{checkReserved(cfg, before)}
	for i := range cfg.Jobs {
		job := &cfg.Jobs[i]
		// The guard of a job of PERSIA's operator waits for all pods of the job, also for its completion.
		if was, had := before.Trainings[job.Name]; had && was.Engine != job.Engine &&
			(job.Engine == config.EngineOperator || was.Replicas() > 0 && !job.Suspend) {
			problems = append(problems, fmt.Errorf("%s: Invalid value: %q: the job %s has engine: %s in the cluster, "+
				"and Pulumi would create its new pods before it deletes the old ones; "+
				"remove the job from the stack file, run `pulumi up`, then write the job again and run it again",
				job.At().Child("engine"), job.Engine, job.Name, was.Engine))
		}
		starts := startsOn(cfg, job, broker[job.Name], before)
		for _, pool := range plan.Pools {
			leaves := leavingPods(cfg, pool.Pool, job, leaving, before)
			together := pool.Pool
			together.Pods = slices.Concat(pool.Pods, leaves)
			if starts[pool.Name] && len(leaves) > 0 && together.Needed() > pool.Nodes {
				problems = append(problems, fmt.Errorf("%[1]s: the job %[2]s does not fit on the pool %[3]s beside %[4]s, "+
					"which Pulumi deletes only when the pods of %[2]s are ready; make two updates: first remove only %[5]s from the stack file, "+
					"and run `pulumi up`; then make the other changes, and run it again",
					job.At(), job.Name, pool.Name, names(leaves, ""), cmp.Or(names(leaves, theJob), theJob+job.Name)))
				break
			}
			problems = append(problems, checkGrowing(cfg, job, before.Trainings[job.Name], together))
		}
	}
	return errors.Join(problems...)
}

// theJob begins the names of the pods of jobs that leave.
const theJob = "the job "

// names returns the names of pods that begin with a prefix.
func names(all []capacity.Pods, prefix string) string {
	var names []string
	for _, pods := range all {
		if strings.HasPrefix(pods.Name, prefix) {
			names = append(names, pods.Name)
		}
	}
	return strings.Join(slices.Compact(names), ", ")
}

// checkReserved refuses nodes that need machines of a reservation that a leaving pool still has.
func checkReserved(cfg *config.Stack, before effects.State) error {
	for _, old := range before.Leaving(cfg.Pools()) {
		for _, pool := range cfg.Pools() {
			if old.Reservation != "" && pool.Reservation == old.Reservation && before.Grows(pool) {
				return fmt.Errorf("%s: Invalid value: %q: the nodes of %s would wait for the machines of the pool %s, "+
					"which Pulumi deletes only when they are there; "+
					"keep the name %s, or remove both pools and the jobs on them, run `pulumi up`, then write %s and the jobs again and run it again",
					cfg.PoolPath(pool.Name).Child("reservation"), pool.Reservation, pool.Name, old.Name, old.Name, pool.Name)
			}
		}
	}
	return nil
}

// startsOn returns the pools on which an update waits for pods of a job, or of its NATS, that need more room than what
// they replace. The pods of a JobSet may wait until the end of the update.
func startsOn(cfg *config.Stack, job *config.Job, cluster config.NATSCluster, before effects.State) map[string]bool {
	old, had := before.Brokers[cluster.Name]
	starts := map[string]bool{cluster.NodePool: !had || old.Pool != cluster.NodePool || old.Size < cluster.Size}
	for _, role := range job.Roles() {
		if job.Suspend || job.Engine == config.EngineJobSet || role.Replicas == 0 {
			continue
		}
		was := before.Trainings[job.Name].Roles[role.Name]
		stays := was.Replicas >= role.Replicas && poolOf(cfg, was, role) == role.NodePool
		fits := stays && requests(job, role, role.Resources).Within(requestsOf(was, role, job, before))
		starts[role.NodePool] = starts[role.NodePool] || !fits
	}
	return starts
}

// requests returns the requests of a pod of a role, with those of the sidecar that GKE adds for its buckets.
func requests(job *config.Job, role config.NamedRole, container corev1.ResourceRequirements) capacity.Resources {
	sidecar, _ := job.GCSFuseSidecar(role.Kind)
	return config.PodRequests(container).Plus(sidecar)
}

// requestsOf returns the requests of a pod in the state. The sidecar that GKE adds for a bucket counts as that of the
// same role of a job in the stack file.
func requestsOf(was effects.Workload, role config.NamedRole, job *config.Job, before effects.State) capacity.Resources {
	container := was.Pod.Containers[0].Resources
	if before.MountsBucket(was) {
		return requests(job, role, container)
	}
	return config.PodRequests(container)
}

// checkGrowing refuses to add replicas and change their requests at once, if the new ones do not fit beside all old
// ones: Kubernetes creates those that are new first, and waits for them before it replaces any other.
func checkGrowing(cfg *config.Stack, job *config.Job, was effects.Training, pool capacity.Pool) error {
	var problems []error
	for _, role := range job.Roles() {
		had := was.Roles[role.Name]
		adds := job.Engine == config.EngineStatefulSet && !job.Suspend && had.Replicas > 0 && had.Replicas < role.Replicas
		if !adds || role.NodePool != pool.Name || poolOf(cfg, had, role) != pool.Name {
			continue
		}
		now := requests(job, role, role.Resources)
		old := capacity.Pods{Count: had.Replicas, Requests: requests(job, role, had.Pod.Containers[0].Resources), Priority: role.Priority.Value}
		together := pool
		together.Pods = append(slices.Clone(pool.Pods), old)
		if same := slices.IndexFunc(pool.Pods, func(p capacity.Pods) bool { return p.Requests == now && p.Priority == old.Priority }); same >= 0 {
			together.Pods[same].Count -= had.Replicas
		}
		if old.Requests != now && pool.Holds(old) > 0 && together.Needed() > pool.Nodes {
			problems = append(problems, fmt.Errorf("%[1]s: Invalid value: %[2]d: the new replicas do not fit on the pool %[3]s "+
				"beside the %[4]d old ones, which Kubernetes replaces only when the new ones are ready; "+
				"write %[4]d with the new resources, run `pulumi up`, then write %[2]d and run it again",
				job.At().Child(role.Field, "replicas"), role.Replicas, pool.Name, had.Replicas))
		}
	}
	return errors.Join(problems...)
}

// leavingPods returns the pods on a pool of what an update deletes, with its name. PERSIA's operator chooses no nodes,
// so its pods count where the job that starts has its own. NATS servers count as those of the stack's settings.
func leavingPods(cfg *config.Stack, pool capacity.Pool, starts *config.Job, leaving, before effects.State) []capacity.Pods {
	var pods []capacity.Pods
	for _, name := range slices.Sorted(maps.Keys(leaving.Trainings)) {
		for _, role := range starts.Roles() {
			was := leaving.Trainings[name].Roles[role.Name]
			here := append(strings.Split(pool.Name, ","), pool.Name) // the pools of a list, and that as a whole
			if was.Replicas > 0 && slices.Contains(here, poolOf(cfg, was, role)) {
				pods = append(pods, capacity.Pods{Name: theJob + name, Count: was.Replicas,
					Requests: requestsOf(was, role, starts, before), Priority: role.Priority.Value})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(leaving.Brokers)) {
		if was := leaving.Brokers[name]; was.Pool == pool.Name {
			pods = append(pods, capacity.Pods{Name: "the NATS cluster " + name, Count: was.Size,
				Requests: cfg.NATS.Requests(), Priority: config.PriorityNATS.Value, Apart: cfg.NATS.AntiAffinity})
		}
	}
	// Pods that no node can hold are on nodes that give way.
	return slices.DeleteFunc(pods, func(p capacity.Pods) bool { return p.Count == 0 || pool.Holds(p) == 0 })
}

// poolOf returns the node pool, or the list of pools, on which pods of the state run. Pods that choose no nodes run where the
// role does.
func poolOf(cfg *config.Stack, was effects.Workload, role config.NamedRole) string {
	for _, list := range cfg.PoolLists() {
		if key, value := list.ListLabel(); was.Pod.NodeSelector[key] == value {
			return list.Name
		}
	}
	selected := was.Pod.NodeSelector
	return cmp.Or(selected[gcp.LabelNodePool], selected[gcp.LabelComputeClass], selected[config.PoolsLabel], role.NodePool)
}
