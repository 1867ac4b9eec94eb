package effects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"persia/config"
	"persia/gcp"
	"persia/infra/gke"
	"persia/kube"
	"persia/workload/nats"
	"persia/workload/pedl"
	"persia/workload/persia/persiav1"
	"persia/workload/queue"
)

// State is what a stack runs, before or after an update.
type State struct {
	// Trainings, Brokers, volumes, pools, and PEDL's workloads are by name.
	Trainings map[string]Training
	Brokers   map[string]Broker
	volumes   map[string]volume
	pools     map[string]pool
	pedl      map[string]Workload
	// files are the files of PEDL's ConfigMaps and Secrets as one text, by kind and name, as far as they are known.
	files map[string]string
	// Replaced is the cluster that gives way to the one of this stack, or nil.
	Replaced *gke.Replacement
}

// Training is a training job with its pods.
type Training struct {
	// Engine is what creates the pods.
	Engine config.Engine
	// Queue is the queue in which the job waits until there is room for it, or "".
	Queue string
	// Roles are the workloads by the suffix of their pods, like nn-worker.
	Roles map[string]Workload
}

// Workload is the pods of a role, or of a part of PEDL.
type Workload struct {
	Replicas int
	Pod      corev1.PodSpec
	// Digest changes with the pods.
	Digest string
	// contract is that of its job.
	contract config.Contract
}

// newWorkload returns the pods of a role whose object has some annotations.
func newWorkload(replicas int, pod corev1.PodSpec, annotations map[string]string) Workload {
	workload := Workload{Replicas: replicas, Pod: pod, Digest: annotations[config.PodsAnnotation]}
	var has bool
	if workload.contract, has = config.ContractOf(annotations); !has {
		workload.contract = oldContract(workload)
	}
	return workload
}

// volume is a PersistentVolume.
type volume struct {
	// claim is the name of its claim.
	claim string
	// storage names the storage for people, and folder the directory of it that pods see, or "".
	storage, folder string
	// deletesData is true if the driver deletes the storage together with the claim.
	deletesData bool
	// options are the mount options.
	options []string
}

// Broker is a NATS cluster.
type Broker struct {
	// Size is the number of servers, and Pool the node pool that they run on.
	Size int
	Pool string
	// object is the NatsCluster, as JSON has it.
	object any
}

// New returns an empty state.
func New() State {
	return State{
		Trainings: map[string]Training{}, Brokers: map[string]Broker{}, volumes: map[string]volume{}, pools: map[string]pool{},
		pedl: map[string]Workload{}, files: map[string]string{},
	}
}

// types are the types of the objects that [State.Add] takes, by their types in Pulumi.
var types = map[tokens.Type]func() any{
	"kubernetes:apps/v1:StatefulSet":      func() any { return &appsv1.StatefulSet{} },
	"kubernetes:apps/v1:Deployment":       func() any { return &appsv1.Deployment{} },
	"kubernetes:apps/v1:DaemonSet":        func() any { return &appsv1.DaemonSet{} },
	"kubernetes:core/v1:PersistentVolume": func() any { return &corev1.PersistentVolume{} },
	"kubernetes:core/v1:ConfigMap":        func() any { return &corev1.ConfigMap{} },
	"kubernetes:core/v1:Secret":           func() any { return &corev1.Secret{} },
	nats.Token:                            func() any { return &kube.Custom[map[string]any]{} },
	queue.JobSetToken:                     func() any { return &queue.JobSet{} },
	"kubernetes:persia.com/v1:PersiaJob":  func() any { return &persiav1.PersiaJob{} },
}

const nodePoolType = "gcp:container/nodePool:NodePool"

// Read reads the objects and node pools in the state of a stack. It omits those that it cannot read.
func Read(resources map[resource.URN]map[string]any) State {
	state := New()
	for _, urn := range slices.Sorted(maps.Keys(resources)) {
		outputs := resources[urn]
		if urn.Type() == nodePoolType {
			state.addPool(outputs)
		} else if empty, ok := types[urn.Type()]; ok {
			object := empty()
			text, err := json.Marshal(outputs)
			if err == nil && json.Unmarshal(text, object) == nil {
				// Kueue suspends a job until there is room. One that the user suspends is not registered.
				if set, is := object.(*queue.JobSet); is && set.Labels[queue.QueueLabel] != "" {
					set.Spec.Suspend = nil
				}
				state.Add(object)
			}
		}
	}
	return state
}

// Add adds a StatefulSet of a role, a JobSet, a PersiaJob, a NatsCluster, a PersistentVolume, a workload of PEDL, a
// ConfigMap, or a Secret. It ignores other objects.
func (s State) Add(object any) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		s.addPEDL(object.ObjectMeta, object.Spec.Template)
	case *appsv1.DaemonSet:
		s.addPEDL(object.ObjectMeta, object.Spec.Template)
	case *corev1.ConfigMap:
		s.files["ConfigMap "+object.Name] = fmt.Sprintf("%q", object.Data)
	case *corev1.Secret:
		s.files["Secret "+object.Name] = fmt.Sprintf("%q", object.Data)
	case *appsv1.StatefulSet:
		s.addPEDL(object.ObjectMeta, object.Spec.Template)
		s.addRole(object)
	case *queue.JobSet:
		roles := rolesOfSet(object.Spec, object.Annotations)
		s.Trainings[object.Name] = Training{Engine: config.EngineJobSet, Queue: object.Labels[queue.QueueLabel], Roles: roles}
	case *persiav1.PersiaJob:
		s.Trainings[object.Name] = Training{Engine: config.EngineOperator, Roles: rolesOf(object.Spec, object.Annotations)}
	case *kube.Custom[map[string]any]:
		if object.Kind == nats.Kind {
			s.addNATS(object)
		}
	case *corev1.PersistentVolume:
		s.volumes[object.Name] = volumeOf(object.Spec)
	}
}

// addNATS adds a NatsCluster.
func (s State) addNATS(cluster *kube.Custom[map[string]any]) {
	object := plain(cluster)
	size, _ := output(object, "spec.size").(float64)
	s.Brokers[cluster.Name] = Broker{
		Size:   int(size),
		Pool:   text(output(object, "spec.pod.nodeSelector", gcp.LabelNodePool)),
		object: object,
	}
}

// addPEDL adds a workload that is in a namespace of PEDL.
func (s State) addPEDL(meta metav1.ObjectMeta, pod corev1.PodTemplateSpec) {
	if meta.Namespace == pedl.NamespaceName || meta.Namespace == pedl.AgentNamespaceName {
		s.pedl[meta.Name] = Workload{Pod: pod.Spec, Digest: meta.Annotations[config.PodsAnnotation]}
	}
}

// addRole adds a StatefulSet to its job.
func (s State) addRole(set *appsv1.StatefulSet) {
	pod := set.Spec.Template
	name, role := pod.Labels[config.JobLabel], pod.Labels["app.kubernetes.io/name"]
	if name == "" || len(pod.Spec.Containers) == 0 {
		return // not of a job
	}
	replicas := int(ptr.Deref(set.Spec.Replicas, 1))
	if s.Trainings[name].Roles == nil {
		s.Trainings[name] = Training{Engine: config.EngineStatefulSet, Roles: map[string]Workload{}}
	}
	s.Trainings[name].Roles[role] = newWorkload(replicas, pod.Spec, set.Annotations)
}

// rolesOfSet returns the roles of a JobSet.
func rolesOfSet(spec queue.JobSetSpec, annotations map[string]string) map[string]Workload {
	roles := map[string]Workload{}
	for _, job := range spec.ReplicatedJobs {
		replicas := 0
		if !ptr.Deref(spec.Suspend, false) {
			replicas = int(ptr.Deref(job.Template.Spec.Completions, 0))
		}
		roles[job.Name] = newWorkload(replicas, job.Template.Spec.Template.Spec, annotations)
	}
	return roles
}

// rolesOf returns the roles of a PersiaJob, with one container each.
func rolesOf(spec persiav1.PersiaJobSpec, annotations map[string]string) map[string]Workload {
	all := map[string]*persiav1.Role{
		config.KindEmbeddingParameterServer.Name: spec.EmbeddingParameterServer,
		config.KindEmbeddingWorker.Name:          spec.EmbeddingWorker,
		config.KindDataloader.Name:               spec.Dataloader,
	}
	if spec.NNWorker != nil {
		all[config.KindNNWorker.Name] = &spec.NNWorker.Role
	}
	roles := map[string]Workload{}
	for name, role := range all {
		if role == nil {
			continue
		}
		container := corev1.Container{Env: slices.Concat(spec.Env, role.Env), VolumeMounts: role.VolumeMounts}
		if role.Resources != nil {
			container.Resources = *role.Resources
		}
		pod := corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: spec.Volumes}
		roles[name] = newWorkload(int(role.Replicas), pod, annotations)
	}
	return roles
}

// volumeOf returns a PersistentVolume.
func volumeOf(spec corev1.PersistentVolumeSpec) volume {
	volume := volume{
		storage:     storageOf(spec.PersistentVolumeSource),
		deletesData: spec.CSI != nil && spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete,
		options:     spec.MountOptions,
	}
	if spec.ClaimRef != nil {
		volume.claim = spec.ClaimRef.Name
	}
	for _, option := range spec.MountOptions {
		if folder, ok := strings.CutPrefix(strings.Replace(option, ":", "=", 1), "only-dir="); ok {
			volume.folder = strings.Trim(folder, "/")
		}
	}
	return volume
}

// together reports whether any change of a job replaces all pods at once.
func (t Training) together() bool {
	return t.Engine == config.EngineJobSet || t.Engine == config.EngineOperator
}

// byOperator reports whether PERSIA's operator creates the pods.
func (t Training) byOperator() bool { return t.Engine == config.EngineOperator }

// Replicas returns how many replicas a job has.
func (t Training) Replicas() int {
	replicas := 0
	for _, role := range t.Roles {
		replicas += role.Replicas
	}
	return replicas
}

// workloads returns the workloads of a job that have replicas, or those of some roles.
func (t Training) workloads(job string, roles ...string) []string {
	var names []string
	for _, role := range slices.Sorted(maps.Keys(t.Roles)) {
		if t.Roles[role].Replicas > 0 && (len(roles) == 0 || slices.Contains(roles, role)) {
			names = append(names, job+"-"+role)
		}
	}
	return names
}

// servers returns how many embedding parameter servers a job has.
func (t Training) servers() int { return t.Roles[config.KindEmbeddingParameterServer.Name].Replicas }

// Running returns the names of the jobs that have replicas.
func (s State) Running() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Trainings)), func(name string) bool { return s.Trainings[name].Replicas() == 0 })
}

// nnWorkers returns the nn-workers of a job.
func (t Training) nnWorkers() Workload { return t.Roles[config.KindNNWorker.Name] }

// contract returns the contract of a job.
func (t Training) contract() config.Contract { return t.nnWorkers().contract }

// container returns the container of a workload, which is empty if there is none.
func (w Workload) container() corev1.Container {
	return first(w.Pod.Containers, func(corev1.Container) bool { return true })
}

// variable returns an environment variable, which is empty if there is none.
func (w Workload) variable(name string) corev1.EnvVar {
	return first(w.container().Env, func(v corev1.EnvVar) bool { return v.Name == name })
}

// volume returns a volume of the pods, which is empty if there is none.
func (w Workload) volume(name string) corev1.Volume {
	return first(w.Pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// first returns the first of some values that is wanted, or the zero value.
func first[T any](all []T, wanted func(T) bool) (found T) {
	if i := slices.IndexFunc(all, wanted); i >= 0 {
		found = all[i]
	}
	return found
}

// plain returns an object as JSON has it.
func plain(object any) any {
	var value any
	if text, err := json.Marshal(object); err != nil || json.Unmarshal(text, &value) != nil {
		return nil
	}
	return value
}

// output returns the value at a path, or nil. The keys below it may contain dots.
func output(value any, path string, keys ...string) any {
	for _, name := range append(strings.Split(path, "."), keys...) {
		switch in := value.(type) {
		case map[string]any:
			value = in[name]
		case []any:
			if len(in) == 0 {
				return nil
			}
			value = in[0]
		default:
			return nil
		}
	}
	return value
}

// flat returns the values in an object by their paths, except defaults, which one of two objects may not name.
func flat(object any) map[string]string {
	all := map[string]string{}
	var add func(path string, value any)
	add = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, inner := range value {
				add(path+"."+name, inner)
			}
		case []any:
			for i, inner := range value {
				add(fmt.Sprint(path, ".", i), inner)
			}
		default:
			if said := text(value); said != "" {
				all[path] = said
			}
		}
	}
	add("", object)
	return all
}

// text returns a value in the form of a stack file, or "" for a default.
func text(value any) string {
	if number, is := value.(float64); is {
		value = int64(number)
	}
	switch said := fmt.Sprint(value); said {
	case "<nil>", "false", "0":
		return ""
	default:
		return said
	}
}
