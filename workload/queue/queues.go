package queue

import (
	_ "embed"
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

// global returns the name of an object without a namespace, which another stack of the cluster may have too.
func global(name string) string { return kube.LabelName("persia", name) }

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
		flavor := kube.Manifest(flavorManifest, struct {
			Pool
			Global string
		}{pool, global(pool.Name)})[0]
		flavors = append(flavors, objects.Add(name+"-"+pool.Name, flavor, args.Needs))
	}
	for _, priority := range args.Queue.Priorities {
		before = append(before, objects.Add(name+"-"+priority.Name, priorityClass(priority), args.Needs))
	}
	for _, team := range args.Teams {
		of := args.queues(team)
		cluster := objects.Add(name+"-"+team.Name, of["ClusterQueue"], flavors)
		before = append(before, objects.Add(name+"-"+team.Name, of["LocalQueue"], append(kube.Needs(cluster), args.Needs...)))
	}
	return before
}

const (
	kueueGroup      = "kueue.x-k8s.io"
	kueueAPIVersion = kueueGroup + "/v1beta2"
	// ClusterQueueToken is the type of a ClusterQueue in Pulumi.
	ClusterQueueToken = "kubernetes:" + kueueAPIVersion + ":ClusterQueue"
)

var (
	//go:embed flavor.yaml
	flavorManifest string
	//go:embed team.yaml
	teamManifest string
)

// queues returns the ClusterQueue and the LocalQueue of a team.
func (a QueuesArgs) queues(team Team) map[string]runtime.Object {
	var covered []corev1.ResourceName
	for _, quota := range a.quotas(capacity.Resources{}) {
		covered = append(covered, quota.Name)
	}
	var flavors []map[string]any
	for i, pool := range a.Pools {
		flavors = append(flavors, map[string]any{"name": global(pool.Name), "resources": a.quotas(team.Quotas[i])})
	}
	return kube.ByKind(teamManifest, map[string]any{
		"Name": team.Name, "Global": global(team.Name), "Queue": a.Queue, "Covered": covered, "Flavors": flavors,
	})
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
		TypeMeta:   metav1.TypeMeta{APIVersion: kueueAPIVersion, Kind: "WorkloadPriorityClass"},
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
