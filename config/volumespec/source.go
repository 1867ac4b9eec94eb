package volumespec

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
)

// Sources are the kinds of source that a volume may have: each field is a [Source].
// Exactly one is given.
type Sources struct {
	HostPath       *HostPath       `json:"hostPath,omitempty"`
	Local          *Local          `json:"local,omitempty"`
	NFS            *NFS            `json:"nfs,omitempty"`
	ISCSI          *ISCSI          `json:"iscsi,omitempty"`
	Filestore      *Filestore      `json:"filestore,omitempty"`
	GCSFuse        *GCSFuse        `json:"gcsFuse,omitempty"`
	PersistentDisk *PersistentDisk `json:"persistentDisk,omitempty"`
	CSI            *CSI            `json:"csi,omitempty"`
}

// Source is where the data of a volume is.
type Source interface {
	// String names the storage for people, like gs://checkpoints.
	fmt.Stringer
	// Field is the field of the stack file that has the source.
	Field() string
	// Identity is the same for two sources over the same data, and empty while what
	// identifies it is missing.
	Identity() string
	// Creation is what the stack creates, or nil if the storage exists.
	Creation() *Creation
	// API is the API of Google Cloud that the storage needs, or empty.
	API() string
	// Disks are the disks of Compute Engine that the stack creates for a size in
	// GiB. They count against the quotas of the region.
	Disks(sizeGiB int64) []capacity.Disk

	traits() traits
	// resolve fills in what depends on the place.
	resolve(Context)
	// check checks what is written. The path is that of the source.
	check(p *check.Problems, path *field.Path, context Context)
	// checkSize checks a size of what the stack creates. The path is that of the size.
	checkSize(p *check.Problems, path *field.Path, volume *Volume)
	// checkUsers checks that the pods reach the storage from where they run.
	checkUsers(p *check.Problems, path *field.Path, users Users)
}

// Creation is storage that the stack creates.
type Creation struct {
	// KMSKey encrypts the storage, or is empty for Google's own key.
	KMSKey string
	// InNetwork says that the storage is in the network of the cluster, which cannot go
	// before it.
	InNetwork bool
	// DeletesData says that `pulumi destroy` deletes the storage with its data.
	DeletesData bool
}

// traits are what all sources of a kind have in common.
type traits struct {
	// access is the access mode unless another one is written.
	access corev1.PersistentVolumeAccessMode
	// block says that the source is a block device, whose file system a second node
	// would destroy.
	block bool
	// directory says that the source is a directory of one node.
	directory bool
	// deletable says that the CSI driver deletes the storage if the reclaim policy
	// is Delete.
	deletable bool
	// driver is the CSI driver that only this kind of source uses, or empty.
	driver string
}

// given are the sources that are written.
func (s *Sources) given() []Source {
	var given []Source
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			given = append(given, fields.Field(i).Interface().(Source))
		}
	}
	return given
}

// kinds has an empty source of each kind.
func kinds() []Source {
	var kinds []Source
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Sources]()) {
		kinds = append(kinds, reflect.New(f.Type.Elem()).Interface().(Source))
	}
	return kinds
}

// Fields are the fields of all kinds of source in a stack file, by the API of Google
// Cloud that they need: without one, the empty text.
func Fields() map[string][]string {
	fields := map[string][]string{}
	for _, kind := range kinds() {
		fields[kind.API()] = append(fields[kind.API()], kind.Field())
	}
	return fields
}

// fields are those of all kinds of source.
func fields() []string {
	var names []string
	for _, kind := range kinds() {
		names = append(names, kind.Field())
	}
	return names
}

// Source is the first source that is written, or nil if there is none.
func (s *Sources) Source() Source {
	if given := s.given(); len(given) > 0 {
		return given[0]
	}
	return nil
}

// Written are the fields of the sources that are written.
func (s *Sources) Written() []string {
	var fields []string
	for _, source := range s.given() {
		fields = append(fields, source.Field())
	}
	return fields
}

// Context is what a source has to know of the rest of the stack file.
type Context struct {
	// Project is the stack's project of Google Cloud. On an existing cluster it is
	// empty.
	Project string
	// Existing says that the stack runs on an existing cluster, where it creates
	// nothing of Google Cloud.
	Existing bool
	// Region is the cluster's region, or empty where it is not known.
	Region string
	// Zones are the zones of a disk or of an instance that names none.
	Zones []string
	// DriverOff reports whether the stack file switches one of GKE's storage drivers
	// off, by the field of cluster.csiDrivers.
	DriverOff func(driver string) bool
	// NoWorkloadIdentity says that the stack file switches off the identities that
	// pods have at Google Cloud.
	NoWorkloadIdentity bool
}

// Users are the pods that mount a volume.
type Users struct {
	// Pools are the node pools that they may run on.
	Pools []Pool
	// ReadOnly says that none of them writes.
	ReadOnly bool
	// OnePod says that there is one pod, which the storage may hold to some of the
	// nodes.
	OnePod bool
}

// Pool is a node pool, as far as storage is concerned with it.
type Pool struct {
	Name string
	// Nodes is the largest number of nodes that the pool has.
	Nodes int
	// Zones are the zones of the nodes. Of an existing cluster they are not known.
	Zones []string
	// MachineType and its Disks, the types of disks that it takes. Without disks
	// nothing is known of the machine.
	MachineType string
	Disks       []string
	// COS says that the nodes run Container-Optimized OS.
	COS bool
}

// nodes is the number of nodes that all pools have at most.
func (u Users) nodes() int {
	nodes := 0
	for _, pool := range u.Pools {
		nodes += pool.Nodes
	}
	return nodes
}

// names are those of the pools.
func (u Users) names() []string {
	names := make([]string, len(u.Pools))
	for i, pool := range u.Pools {
		names[i] = pool.Name
	}
	return names
}

// outside is embedded by sources that Google Cloud knows nothing of: the stack
// creates nothing for them.
type outside struct{}

func (outside) Creation() *Creation         { return nil }
func (outside) API() string                 { return "" }
func (outside) Disks(int64) []capacity.Disk { return nil }

func (outside) resolve(Context)                                 {}
func (outside) checkSize(*check.Problems, *field.Path, *Volume) {}
func (outside) checkUsers(*check.Problems, *field.Path, Users)  {}
