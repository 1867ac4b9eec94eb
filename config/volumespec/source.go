package volumespec

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
)

// Sources has a field for each kind of [Source]. A volume sets exactly one.
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

// Source is the storage that holds the data of a volume.
type Source interface {
	// String names the storage for people, like gs://checkpoints.
	fmt.Stringer
	// Field returns the field of the source in the stack file.
	Field() string
	// Identity returns the same text for sources with the same data, or "" if required
	// fields are missing.
	Identity() string
	// Creation describes what the stack creates, or returns nil if the storage exists.
	Creation() *Creation
	// API returns the Google Cloud API that the storage needs, or "".
	API() string
	// Disks returns the Compute Engine disks that the stack creates for a size in GiB. They
	// count against the quotas of the region.
	Disks(sizeGiB int64) []capacity.Disk

	traits() traits
	// resolve fills in defaults that depend on the cluster.
	resolve(Context)
	// check checks the fields. The path is of the source.
	check(p *check.Problems, path *field.Path, context Context)
	// checkSize checks the size of storage that the stack creates. The path is of the size.
	checkSize(p *check.Problems, path *field.Path, volume *Volume)
	// checkUsers checks that the pods can reach the storage.
	checkUsers(p *check.Problems, path *field.Path, users Users)
}

// Creation describes storage that the stack creates.
type Creation struct {
	// KMSKey encrypts the storage. If it is empty, Google's own key does.
	KMSKey string
	// InNetwork is true if the storage is in the network of the cluster, so that it must be
	// deleted before the network.
	InNetwork bool
	// DeletesData is true if `pulumi destroy` deletes the storage with its data.
	DeletesData bool
}

// traits are the properties of a kind of source.
type traits struct {
	access    corev1.PersistentVolumeAccessMode // the default access mode
	block     bool                              // a block device, whose file system a second node would corrupt
	directory bool                              // a directory of one node
	deletable bool                              // the CSI driver deletes it with reclaimPolicy Delete
	driver    string                            // the CSI driver that only this kind uses, or ""
}

// given returns the sources that the user set.
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

// kinds returns an empty source of each kind.
func kinds() []Source {
	var kinds []Source
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Sources]()) {
		kinds = append(kinds, reflect.New(f.Type.Elem()).Interface().(Source))
	}
	return kinds
}

// Fields returns the fields of all kinds of source by the Google Cloud API that they need, or
// "".
func Fields() map[string][]string {
	fields := map[string][]string{}
	for _, kind := range kinds() {
		fields[kind.API()] = append(fields[kind.API()], kind.Field())
	}
	return fields
}

// fields returns the fields of all kinds of source.
func fields() []string { return check.Words(kinds(), Source.Field) }

// Source returns the first source that the user set, or nil.
func (s *Sources) Source() Source {
	if given := s.given(); len(given) > 0 {
		return given[0]
	}
	return nil
}

// Written returns the fields of the sources that the user set.
func (s *Sources) Written() []string { return check.Words(s.given(), Source.Field) }

// Context is the part of the stack file that sources depend on.
type Context struct {
	// Project is the Google Cloud project of the stack, or "" on an existing cluster.
	Project string
	// Existing is true on an existing cluster, where the stack creates nothing in Google
	// Cloud.
	Existing bool
	// Region is the region of the cluster, or "" if it is unknown.
	Region string
	// Zones are the default zones of disks and instances.
	Zones []string
	// DriverOff reports whether the stack file turns off the storage driver with a field of
	// cluster.csiDrivers. It is nil on an existing cluster.
	DriverOff func(driver string) bool
	// NoWorkloadIdentity is true if the stack file turns off Workload Identity.
	NoWorkloadIdentity bool
}

// Users are the pods that mount a volume.
type Users struct {
	Pools    []Pool // where the pods may run
	ReadOnly bool   // no pod writes
	OnePod   bool   // there is one pod, and the storage may restrict its nodes
}

// Pool describes a node pool to the rules of volumes.
type Pool struct {
	Name string
	// Nodes is the maximum number of nodes.
	Nodes int
	// Zones are the zones of the nodes, or nil on an existing cluster.
	Zones []string
	// MachineType supports the types of boot disks in Disks, which is empty if they are
	// unknown.
	MachineType string
	Disks       []string
	// COS is true if the nodes run Container-Optimized OS.
	COS bool
}

// nodes returns the maximum number of nodes of all pools.
func (u Users) nodes() int {
	nodes := 0
	for _, pool := range u.Pools {
		nodes += pool.Nodes
	}
	return nodes
}

// names returns the names of the pools.
func (u Users) names() []string {
	return check.Words(u.Pools, func(pool Pool) string { return pool.Name })
}

// outside is embedded in sources outside of Google Cloud, for which the stack creates nothing.
type outside struct{}

func (outside) Creation() *Creation         { return nil }
func (outside) API() string                 { return "" }
func (outside) Disks(int64) []capacity.Disk { return nil }

func (outside) resolve(Context)                                 {}
func (outside) checkSize(*check.Problems, *field.Path, *Volume) {}
func (outside) checkUsers(*check.Problems, *field.Path, Users)  {}
