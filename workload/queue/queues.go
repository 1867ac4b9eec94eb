package queue

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
	"persia/config"
	"persia/gcp"
	"persia/kube"
)

// The labels of a job name the LocalQueue that it waits in and its WorkloadPriorityClass. Kueue lets
// only the class of a running job change.
const (
	// QueueLabel has the name of the LocalQueue.
	QueueLabel    = "kueue.x-k8s.io/queue-name"
	priorityLabel = "kueue.x-k8s.io/priority-class"
)

// JobLabels returns the labels of a job in the queue of a team. Without a priority, Kueue would take the
// PriorityClass of a pod.
func JobLabels(team, priority string) map[string]string {
	return map[string]string{QueueLabel: team, priorityLabel: global(priority)}
}

// prefix begins the names of objects without a namespace, which another stack of the cluster may have too.
const prefix = "persia"

// global returns the name of an object without a namespace.
func global(name string) string { return kube.LabelName(prefix, name) }

// QueuesArgs describes the queues of a stack.
type QueuesArgs struct {
	Pools []Pool
	// Uncounted are the resources other than CPU, memory and GPUs that jobs request. Kueue admits no
	// job that requests a resource without a quota, so each team has this much of them on each pool.
	Uncounted corev1.ResourceList
	Teams     []Team
	// Queue has the priorities, and which jobs that run may be stopped for one that waits.
	Queue config.Queue
	// Needs come before the queues, and go after them: Kueue.
	Needs []pulumi.CustomResource
}

// Pool is a node pool on which jobs run.
type Pool struct {
	Name      string
	Placement kube.Placement
}

// Team has a queue.
type Team struct {
	Name string
	// Quotas are the amounts that the team owns, in the order of the pools.
	Quotas []capacity.Resources
}

// NewQueues registers a ResourceFlavor per pool, then a ClusterQueue and a LocalQueue per team.
// The teams lend each other what they do not use. It returns what comes before jobs, and goes after them:
// a ClusterQueue is not gone while one of its jobs is admitted.
func NewQueues(r *kube.Registrar, name string, args QueuesArgs) []pulumi.CustomResource {
	var before []pulumi.CustomResource
	objects := r.Component("persia:kueue:Queues", name)
	flavors := slices.Clone(args.Needs)
	for _, pool := range args.Pools {
		flavors = append(flavors, objects.Add(name+"-"+pool.Name, flavor(pool), args.Needs))
	}
	for _, priority := range args.Queue.Priorities {
		before = append(before, objects.Add(name+"-"+priority.Name, priorityClass(priority), args.Needs))
	}
	for _, team := range args.Teams {
		cluster := objects.Add(name+"-"+team.Name, args.clusterQueue(team), flavors)
		local := objects.Add(name+"-"+team.Name, localQueue(team), append(kube.Needs(cluster), args.Needs...))
		before = append(before, local)
	}
	return before
}

const (
	kueueGroup      = "kueue.x-k8s.io"
	kueueAPIVersion = kueueGroup + "/v1beta2"
	// ClusterQueueToken is the type of a ClusterQueue in Pulumi.
	ClusterQueueToken = "kubernetes:" + kueueAPIVersion + ":ClusterQueue"
)

// fields is a Kueue object. The program writes only a few of its fields.
type fields = map[string]any

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: kueueAPIVersion, Kind: kind}
}

func object(kind, namespace, name, instance string, spec fields) *kube.Custom[fields] {
	return &kube.Custom[fields]{TypeMeta: typeMeta(kind), ObjectMeta: kube.Meta(namespace, name, kube.Labels("queue", instance)), Spec: spec}
}

// untilActive makes Pulumi wait until Kueue accepts an object.
var untilActive = map[string]string{"pulumi.com/waitFor": "condition=Active"}

func flavor(pool Pool) runtime.Object {
	spec := fields{"nodeLabels": pool.Placement.NodeSelector}
	var taints []fields
	for _, toleration := range pool.Placement.Tolerations {
		taints = append(taints, fields{"key": toleration.Key, "value": toleration.Value, "effect": toleration.Effect})
	}
	if taints != nil {
		spec["nodeTaints"] = taints
	}
	return object("ResourceFlavor", "", global(pool.Name), pool.Name, spec)
}

func (a QueuesArgs) clusterQueue(team Team) runtime.Object {
	// Kueue lets a job that needs more than its team owns stop others only if borrowWithinCohort says so,
	// even jobs of its own team.
	borrow := "LowerPriority"
	if a.Queue.BetweenTeams == "Never" {
		borrow = "Never"
	}
	queue := object("ClusterQueue", "", global(team.Name), team.Name, fields{
		"cohortName": prefix,
		// Otherwise small jobs could overtake a large one for as long as some come.
		"queueingStrategy":  "StrictFIFO",
		"namespaceSelector": fields{"matchLabels": fields{corev1.LabelMetadataName: config.JobNamespace}},
		"preemption": fields{
			"reclaimWithinCohort": a.Queue.BetweenTeams,
			"withinClusterQueue":  a.Queue.WithinTeam,
			"borrowWithinCohort":  fields{"policy": borrow},
		},
	})
	queue.Annotations = untilActive
	var covered []corev1.ResourceName
	for _, quota := range a.quotas(capacity.Resources{}) {
		covered = append(covered, quota.Name)
	}
	var flavors []fields
	for i, pool := range a.Pools {
		flavors = append(flavors, fields{"name": global(pool.Name), "resources": a.quotas(team.Quotas[i])})
	}
	if flavors != nil { // some job waits in queues
		queue.Spec["resourceGroups"] = []fields{{"coveredResources": covered, "flavors": flavors}}
	}
	return queue
}

type quota struct {
	Name         corev1.ResourceName `json:"name"`
	NominalQuota string              `json:"nominalQuota"`
}

// quotas are always in the same order, as Kueue requires.
func (a QueuesArgs) quotas(r capacity.Resources) []quota {
	quotas := []quota{
		{corev1.ResourceCPU, resource.NewMilliQuantity(r.MilliCPU, resource.DecimalSI).String()},
		{corev1.ResourceMemory, resource.NewQuantity(r.MemoryBytes, resource.BinarySI).String()},
		{gcp.GPUResource, resource.NewQuantity(r.GPUs, resource.DecimalSI).String()},
	}
	for _, name := range slices.Sorted(maps.Keys(a.Uncounted)) {
		amount := a.Uncounted[name]
		quotas = append(quotas, quota{name, amount.String()})
	}
	return quotas
}

func localQueue(team Team) runtime.Object {
	queue := object("LocalQueue", config.JobNamespace, team.Name, team.Name, fields{"clusterQueue": global(team.Name)})
	queue.Annotations = untilActive
	return queue
}

// workloadPriorityClass has its value beside its metadata.
type workloadPriorityClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Value             int32 `json:"value"`
}

// DeepCopyObject copies the object, as [runtime.Object] requires.
func (c *workloadPriorityClass) DeepCopyObject() runtime.Object { return kube.Copy(c) }

func priorityClass(priority config.QueuePriority) runtime.Object {
	return &workloadPriorityClass{
		TypeMeta:   typeMeta("WorkloadPriorityClass"),
		ObjectMeta: kube.Meta("", global(priority.Name), kube.Labels("queue", priority.Name)),
		Value:      int32(priority.Value),
	}
}

// NewPriorityClasses registers a PriorityClass for each priority.
func NewPriorityClasses(r *kube.Registrar, name string) []pulumi.CustomResource {
	var classes []pulumi.CustomResource
	objects := r.Component("persia:workload:PriorityClasses", name)
	for _, priority := range config.Priorities() {
		classes = append(classes, objects.Add(priority.Name, &schedulingv1.PriorityClass{
			ObjectMeta:  kube.Meta("", priority.Name, kube.Labels("priority", priority.Name)),
			Value:       int32(priority.Value),
			Description: priority.Description,
		}, nil))
	}
	return classes
}
