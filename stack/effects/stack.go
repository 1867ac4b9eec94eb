// Package effects describes the effects of an update on running jobs. It compares the resources in
// the state of the stack with those that the program registers. Pulumi's preview shows which
// resources change; this package says what happens to the training jobs and their data.
package effects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"persia/config"
	"persia/infra/gke"
	"persia/infra/gpu"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/pedl"
	"persia/workload/persia"
	"persia/workload/persia/persiav1"
	"persia/workload/queue"
)

// Stack has the jobs, volumes and node pools of a stack, before or after an update.
type Stack struct {
	// Jobs, Volumes, Pools and NATS clusters are by name, and Queues by the team.
	Jobs    map[string]Job
	Volumes map[string]Volume
	Pools   map[string]Pool
	NATS    map[string]NATS
	Queues  map[string]Queue
	// PEDL has PEDL's workloads by name, and ConfigMaps and Secrets the files of its
	// ConfigMaps and Secrets by name, as far as they are known.
	PEDL                map[string]Role
	ConfigMaps, Secrets map[string]map[string]string
	// Driver is how GPU nodes get their driver.
	Driver config.NVIDIADriver
	// Protected is true if Pulumi refuses to delete the cluster and its node pools.
	Protected bool
	// Zones are the zones of the cluster, for node pools without zones of their own.
	Zones []string
	// deleted has the storage that the update deletes, by name.
	deleted map[string]bool
	// Replaced is the cluster that gives way to the one of this stack, or nil.
	Replaced *gke.Replacement
}

// Job is a training job.
type Job struct {
	// ByOperator is true if PERSIA's operator creates the pods.
	ByOperator bool
	// Together is true if any change replaces all pods at once.
	Together bool
	// Queue is the queue in which the job waits until there is room for it, or "".
	Queue string
	// Roles are the roles by the suffix of their pods, like nn-worker.
	Roles map[string]Role
}

// Role is a role of a job, or a workload of PEDL.
type Role struct {
	Replicas int
	Pod      corev1.PodTemplateSpec
	// Digest changes with the pods.
	Digest string
}

// Volume is a PersistentVolume.
type Volume struct {
	// Claim is the name of its claim.
	Claim string
	// Storage names the storage for people, and Folder the directory of it that pods see, or "".
	Storage, Folder string
	// Options are the mount options, as one text.
	Options string
	// DeletesData is true if the driver deletes the storage together with the claim.
	DeletesData bool
}

// New returns an empty stack.
func New() Stack {
	return Stack{Jobs: map[string]Job{}, Volumes: map[string]Volume{}, Pools: map[string]Pool{}, NATS: map[string]NATS{}, Queues: map[string]Queue{}, PEDL: map[string]Role{}, ConfigMaps: map[string]map[string]string{}, Secrets: map[string]map[string]string{}}
}

// Read reads the objects and node pools in the state of a stack. It omits those that it cannot
// read.
func Read(resources map[resource.URN]map[string]any) Stack {
	stack := New()
	stack.Driver.Installer = config.InstallerManaged
	for _, urn := range slices.Sorted(maps.Keys(resources)) {
		outputs := resources[urn]
		switch urn.Type() {
		case "kubernetes:apps/v1:StatefulSet":
			add(stack, outputs, &appsv1.StatefulSet{})
		case queue.JobSetToken:
			add(stack, outputs, &queue.JobSet{})
		case "kubernetes:" + persiav1.Group + "/" + persiav1.Version + ":" + persiav1.Kind:
			add(stack, outputs, &persiav1.PersiaJob{})
		case "kubernetes:core/v1:PersistentVolume":
			add(stack, outputs, &corev1.PersistentVolume{})
		case "kubernetes:apps/v1:Deployment":
			add(stack, outputs, &appsv1.Deployment{})
		case "kubernetes:apps/v1:DaemonSet":
			set := &appsv1.DaemonSet{}
			add(stack, outputs, set)
			if driver, installs := gpu.Installed(set); installs {
				stack.Driver = driver
			}
		case "kubernetes:core/v1:ConfigMap":
			add(stack, outputs, &corev1.ConfigMap{})
		case "kubernetes:core/v1:Secret":
			add(stack, outputs, &corev1.Secret{})
		case queue.ClusterQueueToken:
			stack.addQueue(outputs)
		case nats.Token:
			stack.addNATS(outputs)
		case nodePoolType:
			stack.addPool(outputs)
		case clusterType:
			stack.Protected, _ = outputs["deletionProtection"].(bool)
			stack.Zones = texts(outputs["nodeLocations"])
		}
	}
	return stack
}

// Types of resources of Google Cloud in the state of a stack.
const (
	clusterType  = "gcp:container/cluster:Cluster"
	nodePoolType = "gcp:container/nodePool:NodePool"
)

// texts returns the elements of a list, or nil.
func texts(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, element := range list {
		all = append(all, fmt.Sprint(element))
	}
	return all
}

// add adds an object of the state to a stack.
func add(stack Stack, outputs map[string]any, object any) {
	text, err := json.Marshal(outputs)
	if err == nil && json.Unmarshal(text, object) == nil {
		stack.Add(object)
	}
}

// Add adds a StatefulSet of a role, a JobSet, a PersiaJob, a PersistentVolume, or a workload, a
// ConfigMap, or a Secret of PEDL.
func (s Stack) Add(object any) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		s.addPEDL(object.ObjectMeta, object.Spec.Template)
	case *appsv1.DaemonSet:
		s.addPEDL(object.ObjectMeta, object.Spec.Template)
	case *corev1.ConfigMap:
		if ofPEDL(object.ObjectMeta) {
			s.ConfigMaps[object.Name] = object.Data
		}
	case *corev1.Secret:
		if !ofPEDL(object.ObjectMeta) {
			return
		}
		s.Secrets[object.Name] = map[string]string{}
		for name, content := range object.Data {
			s.Secrets[object.Name][name] = string(content)
		}
	case *appsv1.StatefulSet:
		s.addPEDL(object.ObjectMeta, object.Spec.Template)
		name, role := object.Spec.Template.Labels[persia.JobLabel], object.Spec.Template.Labels["app.kubernetes.io/name"]
		if name == "" || len(object.Spec.Template.Spec.Containers) == 0 {
			return // not of a job
		}
		job := s.Jobs[name]
		if job.Roles == nil {
			job.Roles = map[string]Role{}
		}
		replicas := int32(1)
		if object.Spec.Replicas != nil {
			replicas = *object.Spec.Replicas
		}
		job.Roles[role] = Role{int(replicas), object.Spec.Template, object.Annotations[kube.PodsAnnotation]}
		s.Jobs[name] = job
	case *queue.JobSet:
		s.Jobs[object.Name] = Job{Together: true, Queue: object.Labels[queue.QueueLabel], Roles: rolesOfSet(object.Spec, object.Annotations[kube.PodsAnnotation])}
	case *persiav1.PersiaJob:
		s.Jobs[object.Name] = Job{ByOperator: true, Together: true, Roles: rolesOf(object.Spec, object.Annotations[kube.PodsAnnotation])}
	case *corev1.PersistentVolume:
		volume := Volume{
			Storage:     storageOf(object.Spec.PersistentVolumeSource),
			Options:     strings.Join(object.Spec.MountOptions, ", "),
			DeletesData: object.Spec.CSI != nil && object.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete,
		}
		if object.Spec.ClaimRef != nil {
			volume.Claim = object.Spec.ClaimRef.Name
		}
		for _, option := range object.Spec.MountOptions {
			if folder, ok := strings.CutPrefix(strings.Replace(option, ":", "=", 1), "only-dir="); ok {
				volume.Folder = strings.Trim(folder, "/")
			}
		}
		s.Volumes[object.Name] = volume
	}
}

// addPEDL adds a workload that is in a namespace of PEDL.
func (s Stack) addPEDL(meta metav1.ObjectMeta, pod corev1.PodTemplateSpec) {
	if ofPEDL(meta) {
		s.PEDL[meta.Name] = Role{Pod: pod, Digest: meta.Annotations[kube.PodsAnnotation]}
	}
}

func ofPEDL(meta metav1.ObjectMeta) bool {
	return meta.Namespace == pedl.NamespaceName || meta.Namespace == pedl.AgentNamespaceName
}

// rolesOfSet returns the roles of a JobSet.
func rolesOfSet(spec queue.JobSetSpec, digest string) map[string]Role {
	roles := map[string]Role{}
	for _, job := range spec.ReplicatedJobs {
		replicas := 0
		if job.Template.Spec.Completions != nil && (spec.Suspend == nil || !*spec.Suspend) {
			replicas = int(*job.Template.Spec.Completions)
		}
		roles[job.Name] = Role{replicas, job.Template.Spec.Template, digest}
	}
	return roles
}

// rolesOf returns the roles of a PersiaJob, with one container each.
func rolesOf(spec persiav1.PersiaJobSpec, digest string) map[string]Role {
	roles := map[string]Role{}
	add := func(kind config.Kind, role *persiav1.Role) {
		if role == nil {
			return
		}
		container := corev1.Container{Env: slices.Concat(spec.Env, role.Env), VolumeMounts: role.VolumeMounts}
		if role.Resources != nil {
			container.Resources = *role.Resources
		}
		roles[kind.Name] = Role{int(role.Replicas), corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: spec.Volumes}}, digest}
	}
	add(config.KindEmbeddingParameterServer, spec.EmbeddingParameterServer)
	add(config.KindEmbeddingWorker, spec.EmbeddingWorker)
	add(config.KindDataloader, spec.Dataloader)
	if spec.NNWorker != nil {
		add(config.KindNNWorker, &spec.NNWorker.Role)
	}
	return roles
}

// Engine returns what creates the pods of a job.
func (j Job) Engine() config.Engine {
	switch {
	case j.ByOperator:
		return config.EngineOperator
	case j.Together:
		return config.EngineJobSet
	default:
		return config.EngineStatefulSet
	}
}

// Replicas returns how many replicas a job has.
func (j Job) Replicas() int {
	replicas := 0
	for _, role := range j.Roles {
		replicas += role.Replicas
	}
	return replicas
}

// Running returns the names of the jobs that have replicas.
func (s Stack) Running() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Jobs)) {
		if s.Jobs[name].Replicas() > 0 {
			names = append(names, name)
		}
	}
	return names
}

// run returns the run of a job, or "" if PERSIA's operator creates its pods.
func (j Job) run() string { return j.nnWorkers().variable("PERSIA_RUN") }
