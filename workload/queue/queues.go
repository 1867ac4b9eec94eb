package queue

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"persia/capacity"
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

// JobLabels returns the labels of a job in the queue of a team. Prefix is the prefix of the queues.
// Without a priority, Kueue would take the PriorityClass of a pod.
func JobLabels(prefix, team, priority string) map[string]string {
	return map[string]string{QueueLabel: team, priorityLabel: kube.LabelName(prefix, priority)}
}

// QueuesArgs describes the queues of a stack.
type QueuesArgs struct {
	// Prefix begins the names of objects without a namespace, which another stack of the
	// cluster may have too.
	Prefix string
	// JobNamespace has the jobs that wait.
	JobNamespace string
	Pools        []Pool
	// Uncounted are the resources other than CPU, memory and GPUs that jobs request. Kueue admits no
	// job that requests a resource without a quota, so each team has this much of them on each pool.
	Uncounted  corev1.ResourceList
	Teams      []Team
	Priorities []Priority
	// WithinTeam and BetweenTeams say which jobs that run may be stopped for one that waits,
	// in the words of Kueue.
	WithinTeam, BetweenTeams string
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

// Priority is a WorkloadPriorityClass.
type Priority struct {
	Name  string
	Value int
}

// Queues are the queues of a stack.
type Queues struct {
	pulumi.ResourceState

	// Objects come before jobs, and go after them: a ClusterQueue is not gone while one of
	// its jobs is admitted.
	Objects []pulumi.CustomResource
}

// NewQueues registers a ResourceFlavor per pool, then a ClusterQueue and a LocalQueue per team.
// The teams lend each other what they do not use.
func NewQueues(ctx *pulumi.Context, name string, args QueuesArgs, opts ...pulumi.ResourceOption) (*Queues, error) {
	component := &Queues{}
	objects := kube.NewComponent(ctx, "persia:kueue:Queues", name, component, opts...)
	flavors := slices.Clone(args.Needs)
	for _, pool := range args.Pools {
		flavors = append(flavors, objects.Add(name+"-"+pool.Name, args.flavor(pool), args.Needs))
	}
	for _, priority := range args.Priorities {
		component.Objects = append(component.Objects, objects.Add(name+"-"+priority.Name, args.priorityClass(priority), args.Needs))
	}
	for i, clusterQueue := range args.ClusterQueues() {
		team := args.Teams[i]
		cluster := objects.Add(name+"-"+team.Name, clusterQueue, flavors)
		local := objects.Add(name+"-"+team.Name, args.localQueue(team), append(kube.Needs(cluster), args.Needs...))
		component.Objects = append(component.Objects, local)
	}
	return component, objects.End()
}

func (a QueuesArgs) name(name string) string { return kube.LabelName(a.Prefix, name) }

// TeamLabel is the label with the name of the team, on its ClusterQueue.
const TeamLabel = "app.kubernetes.io/instance"

func labels(name string) map[string]string { return kube.Labels("queue", name) }

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: kueueAPIVersion, Kind: kind}
}

// untilActive makes Pulumi wait until Kueue accepts an object.
func untilActive(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.Annotations = map[string]string{"pulumi.com/waitFor": "condition=Active"}
	return meta
}

type flavorSpec struct {
	NodeLabels map[string]string `json:"nodeLabels"`
	NodeTaints []corev1.Taint    `json:"nodeTaints,omitempty"`
}

func (a QueuesArgs) flavor(pool Pool) runtime.Object {
	spec := flavorSpec{NodeLabels: pool.Placement.NodeSelector}
	for _, toleration := range pool.Placement.Tolerations {
		spec.NodeTaints = append(spec.NodeTaints, corev1.Taint{Key: toleration.Key, Value: toleration.Value, Effect: toleration.Effect})
	}
	return &kube.Custom[flavorSpec]{
		TypeMeta:   typeMeta("ResourceFlavor"),
		ObjectMeta: kube.Meta("", a.name(pool.Name), labels(pool.Name)),
		Spec:       spec,
	}
}

type clusterQueueSpec struct {
	CohortName        string               `json:"cohortName"`
	QueueingStrategy  string               `json:"queueingStrategy"`
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
	Preemption        preemption           `json:"preemption"`
	// ResourceGroups is empty in a stack whose jobs do not wait in queues yet.
	ResourceGroups []resourceGroup `json:"resourceGroups,omitempty"`
}

type preemption struct {
	ReclaimWithinCohort string             `json:"reclaimWithinCohort"`
	WithinClusterQueue  string             `json:"withinClusterQueue"`
	BorrowWithinCohort  borrowWithinCohort `json:"borrowWithinCohort"`
}

type borrowWithinCohort struct {
	Policy string `json:"policy"`
}

// preemption returns the policy of a team's queue. Kueue lets a job that needs more than its team owns
// stop others only if borrowWithinCohort says so, even jobs of its own team.
func (a QueuesArgs) preemption() preemption {
	borrow := "LowerPriority"
	if a.BetweenTeams == "Never" {
		borrow = "Never"
	}
	return preemption{a.BetweenTeams, a.WithinTeam, borrowWithinCohort{borrow}}
}

type resourceGroup struct {
	CoveredResources []corev1.ResourceName `json:"coveredResources"`
	Flavors          []flavorQuotas        `json:"flavors"`
}

type flavorQuotas struct {
	Name      string  `json:"name"`
	Resources []quota `json:"resources"`
}

type quota struct {
	Name         corev1.ResourceName `json:"name"`
	NominalQuota string              `json:"nominalQuota"`
}

const (
	kueueGroup      = "kueue.x-k8s.io"
	kueueAPIVersion = kueueGroup + "/v1beta2"
	// ClusterQueueToken is the type of a ClusterQueue in Pulumi.
	ClusterQueueToken = "kubernetes:" + kueueAPIVersion + ":ClusterQueue"
)

// ClusterQueues returns the ClusterQueue of each team.
func (a QueuesArgs) ClusterQueues() []runtime.Object {
	var objects []runtime.Object
	for _, team := range a.Teams {
		objects = append(objects, a.clusterQueue(team))
	}
	return objects
}

func (a QueuesArgs) clusterQueue(team Team) runtime.Object {
	var groups []resourceGroup
	var group resourceGroup
	for _, quota := range a.quotas(capacity.Resources{}) {
		group.CoveredResources = append(group.CoveredResources, quota.Name)
	}
	for i, pool := range a.Pools {
		group.Flavors = append(group.Flavors, flavorQuotas{Name: a.name(pool.Name), Resources: a.quotas(team.Quotas[i])})
	}
	if len(group.Flavors) > 0 {
		groups = []resourceGroup{group}
	}
	return &kube.Custom[clusterQueueSpec]{
		TypeMeta:   typeMeta("ClusterQueue"),
		ObjectMeta: untilActive(kube.Meta("", a.name(team.Name), labels(team.Name))),
		Spec: clusterQueueSpec{
			CohortName: a.Prefix,
			// Otherwise small jobs could overtake a large one for as long as some come.
			QueueingStrategy:  "StrictFIFO",
			NamespaceSelector: *kube.Namespace(a.JobNamespace).NamespaceSelector,
			Preemption:        a.preemption(),
			ResourceGroups:    groups,
		},
	}
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

type localQueueSpec struct {
	ClusterQueue string `json:"clusterQueue"`
}

func (a QueuesArgs) localQueue(team Team) runtime.Object {
	return &kube.Custom[localQueueSpec]{
		TypeMeta:   typeMeta("LocalQueue"),
		ObjectMeta: untilActive(kube.Meta(a.JobNamespace, team.Name, labels(team.Name))),
		Spec:       localQueueSpec{ClusterQueue: a.name(team.Name)},
	}
}

// workloadPriorityClass has its value beside its metadata.
type workloadPriorityClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Value             int32 `json:"value"`
}

// DeepCopyObject copies the object, as [runtime.Object] requires.
func (c *workloadPriorityClass) DeepCopyObject() runtime.Object { return kube.Copy(c) }

func (a QueuesArgs) priorityClass(priority Priority) runtime.Object {
	return &workloadPriorityClass{
		TypeMeta:   typeMeta("WorkloadPriorityClass"),
		ObjectMeta: kube.Meta("", a.name(priority.Name), labels(priority.Name)),
		Value:      int32(priority.Value),
	}
}
