package config

import (
	_ "embed"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
)

// Stack is one deployment: the values of a stack file, complete and valid.
//
// Fields have the tags of package input, and two more for the reference: form:"quantity" marks strings that are
// quantities, and change says what Google Cloud does when a field of a node pool changes. Here, key is the key of
// the stack file, and missing the remedy if a required key is missing.
type Stack struct {
	Site
	MachineTypes Machines     `key:"machineTypes"`
	NodePools    []Pool       `key:"nodePools" missing:"write the list of node pools, or [] for none"`
	NVIDIADriver NVIDIADriver `key:"nvidiaDriver"`
	Storage      []Volume     `key:"storage"`
	NATS         NATS         `key:"nats"`
	Images       Images       `key:"images"`
	Operator     Operator     `key:"operator"`
	Queue        Queue        `key:"queue"`
	Jobs         []Job        `key:"jobs" missing:"write the list of jobs, or [] for none"`
	PEDL         *PEDL        `key:"pedl"`

	system          Pool // unless the cluster exists already
	warnings, first []string
}

// hasOneNode reports whether the stack creates a cluster of one node.
func (s *Stack) hasOneNode() bool { return !s.existing() && s.addresses().Nodes == 1 }

// Namespace is the namespace of the keys, the name of the project in Pulumi.yaml.
const Namespace = "persia"

const (
	projectKey      = Namespace + ":project"
	clusterKey      = Namespace + ":cluster"
	nodePoolsKey    = Namespace + ":nodePools"
	nvidiaDriverKey = Namespace + ":nvidiaDriver"
	storageKey      = Namespace + ":storage"
	natsKey         = Namespace + ":nats"
	imagesKey       = Namespace + ":images"
	operatorKey     = Namespace + ":operator"
	queueKey        = Namespace + ":queue"
	jobsKey         = Namespace + ":jobs"
	pedlKey         = Namespace + ":pedl"
)

// Keys returns the keys of a stack file that [Load] reads, each with its namespace.
func Keys() []string { return input.Words(keyFields(), keyOf) }

func keyFields() []reflect.StructField {
	fields := reflect.VisibleFields(reflect.TypeFor[Stack]())
	return slices.DeleteFunc(fields, func(f reflect.StructField) bool { return f.Tag.Get("key") == "" })
}

func keyOf(f reflect.StructField) string { return Namespace + ":" + f.Tag.Get("key") }

// Pools returns all node pools of the cluster: the system pool, unless the cluster exists
// already, and the pools of the stack file.
func (s *Stack) Pools() []Pool {
	if s.existing() {
		return s.NodePools
	}
	return append([]Pool{s.system}, s.NodePools...)
}

// Pool returns the node pool with a name, or the pools of a list as one, and whether the cluster has it.
func (s *Stack) Pool(name string) (Pool, bool) {
	if !isList(name) {
		return poolNamed(s.Pools(), name)
	}
	var listed []Pool
	for _, name := range poolsIn(name) {
		pool, ok := poolNamed(s.Pools(), name)
		if !ok {
			return Pool{}, false
		}
		listed = append(listed, pool)
	}
	return asOne(name, listed), true
}

// PoolPath returns the path of a pool in the stack file.
func (s *Stack) PoolPath(name string) *field.Path {
	i := slices.IndexFunc(s.NodePools, func(p Pool) bool { return p.Name == name })
	if i < 0 {
		return field.NewPath(clusterKey, "systemPool")
	}
	return field.NewPath(nodePoolsKey).Index(i)
}

// poolNames returns the names of the stack file's pools, in its order.
func (s *Stack) poolNames() []string {
	return input.Words(s.NodePools, func(p Pool) string { return p.Name })
}

// addresses counts the addresses that all pools need when each is at its maximum.
func (s *Stack) addresses() addressNeeds {
	var needs addressNeeds
	for _, p := range s.Pools() {
		needs.Nodes += p.MostNodes()
		needs.PodAddresses += p.MostNodes() * capacity.PodAddresses(p.MaxPodsPerNode)
	}
	return needs
}

// volume returns the volume with a name, or nil.
func (s *Stack) volume(name string) *Volume {
	if i := slices.IndexFunc(s.Storage, func(v Volume) bool { return v.Name == name }); i >= 0 {
		return &s.Storage[i]
	}
	return nil
}

// StoredVolume is a volume of the stack with its path in the stack file.
type StoredVolume struct {
	Volume
	Path *field.Path
	// Contents completes "all …", like checkpoints.
	Contents string
}

// StoredVolumes returns all volumes of the stack, including the volume of PEDL's database.
func (s *Stack) StoredVolumes() []StoredVolume {
	var volumes []StoredVolume
	for i, v := range s.Storage {
		volumes = append(volumes, StoredVolume{Volume: v, Path: field.NewPath(storageKey).Index(i), Contents: "checkpoints"})
	}
	if v, ok := s.PEDLDatabase(); ok {
		volumes = append(volumes, StoredVolume{Volume: v, Path: field.NewPath(pedlKey, "postgresql", "persistence"), Contents: "of PEDL's data"})
	}
	return volumes
}

// PEDLDatabase returns the volume of PEDL's database, and whether it is a volume of the stack.
func (s *Stack) PEDLDatabase() (Volume, bool) {
	if s.PEDL == nil || s.PEDL.Postgres.External != nil {
		return Volume{}, false
	}
	data := s.PEDL.Postgres.Persistence
	return data.volume(), data.Enabled && data.Source() != nil
}

// HasQueues reports whether jobs of the stack can wait in queues.
func (s *Stack) HasQueues() bool { return len(s.Queue.Teams) > 0 }

// queued returns the jobs that wait in queues.
func (s *Stack) queued() []*Job {
	var jobs []*Job
	for i := range s.Jobs {
		if s.Jobs[i].Queue != "" {
			jobs = append(jobs, &s.Jobs[i])
		}
	}
	return jobs
}

// AsksForNodes reports whether a job runs on a pool with queued provisioning.
func (s *Stack) AsksForNodes() bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return s.AsksForNNWorkers(&j) })
}

// AsksForNNWorkers reports whether the nodes of a job's nn-workers come for a ProvisioningRequest.
func (s *Stack) AsksForNNWorkers(job *Job) bool {
	pool, _ := s.Pool(job.NNWorker.NodePool)
	return pool.QueuedProvisioning
}

// uses reports whether a job of the stack has an engine.
func (s *Stack) uses(engine Engine) bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.Engine == engine })
}

// UsesOperator reports whether PERSIA's operator runs a job of the stack.
func (s *Stack) UsesOperator() bool { return s.uses(EngineOperator) }

// InstallsJobSet reports whether the stack brings the controller of its JobSets. Kueue needs
// the definition of JobSets, too.
func (s *Stack) InstallsJobSet() bool {
	return !s.Queue.Existing && (s.HasQueues() || s.uses(EngineJobSet))
}

// InstallsKueue reports whether the stack brings the controller of its queues.
func (s *Stack) InstallsKueue() bool { return s.HasQueues() && !s.Queue.Existing }
