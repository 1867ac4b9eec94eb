package config

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/input"
	"persia/gcp"
)

// Volume is a checkpoint volume: a PersistentVolume and the claim that binds to it, in
// the namespace of the jobs. It has exactly one source.
type Volume struct {
	// Name is the name of the PersistentVolume.
	Name string `json:"name" form:"label"`
	// Claim is the name of the PersistentVolumeClaim. Default: the name of the volume
	// with "-claim" appended.
	Claim string `json:"claim,omitempty" form:"subdomain"`
	// Size is the capacity of the volume and the request of the claim, a quantity like
	// 10Gi. You can increase it. Storage that the stack creates cannot shrink.
	Size string `json:"size" form:"quantity"`
	// AccessModes are the ways in which nodes can mount the volume. Default:
	// ReadWriteOnce for block devices and for directories of one node, and ReadWriteMany
	// for storage that many nodes share.
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty" unique:"true" enum:"ReadWriteOnce,ReadOnlyMany,ReadWriteMany"`
	// ReclaimPolicy determines what happens to the storage when the claim is deleted, as by `pulumi
	// destroy`. With Delete, the CSI driver deletes all checkpoints.
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty" default:"Retain" enum:"Retain,Delete"`
	// MountOptions are passed to the driver. A bucket also has implicit-dirs, which shows folders that
	// an upload has made, unless you write implicit-dirs=false.
	MountOptions []string `json:"mountOptions,omitempty"`
	// Labels are Kubernetes labels for the volume and the claim.
	Labels map[string]string `json:"labels,omitempty" form:"labels"`

	Sources `json:",inline"`
}

// Resolve fills in defaults that depend on the rest of the stack file.
func (v *Volume) Resolve(stack *Stack) {
	if v.Claim == "" && v.Name != "" {
		v.Claim = v.Name + "-claim"
	}
	source := v.Source()
	if source == nil {
		return
	}
	if len(v.AccessModes) == 0 {
		v.AccessModes = []corev1.PersistentVolumeAccessMode{source.traits().access}
	}
	source.resolve(stack)
	if v.MountedBySidecar() && !slices.ContainsFunc(v.MountOptions, func(option string) bool { return implicitDirs.MatchString(option) }) {
		v.MountOptions = append([]string{"implicit-dirs"}, v.MountOptions...)
	}
}

// implicitDirs matches the option that shows the folders of a bucket that an upload has made.
var implicitDirs = regexp.MustCompile(`^-*implicit[-_]dirs\b`)

// SizeGiB returns the size in GiB, rounded up, or 0 if it is invalid.
func (v *Volume) SizeGiB() int64 {
	size, err := input.ParseQuantity(v.Size)
	if err != nil {
		return 0
	}
	return (size.Value() + 1<<30 - 1) >> 30
}

// wholeGiB reports whether the size is a whole number of GiB.
func (v *Volume) wholeGiB() bool {
	size, err := input.ParseQuantity(v.Size)
	return err == nil && size.Value()%(1<<30) == 0
}

// Creates reports whether the stack creates the storage of the volume.
func (v *Volume) Creates() bool { return v.Creation() != nil }

// Creation describes what the stack creates for the volume, or returns nil if the storage
// exists already.
func (v *Volume) Creation() *Creation {
	if source := v.Source(); source != nil {
		return source.Creation()
	}
	return nil
}

// DeletesData reports whether `pulumi destroy` deletes the data of the volume.
func (v *Volume) DeletesData() bool {
	creation := v.Creation()
	return v.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete || creation != nil && creation.DeletesData
}

// MountedBySidecar reports whether GKE adds a container to each pod that mounts the
// volume.
func (v *Volume) MountedBySidecar() bool {
	_, ok := v.Source().(*GCSFuse)
	return ok
}

// OnOneNode reports whether the volume is a directory of one node.
func (v *Volume) OnOneNode() bool {
	source := v.Source()
	return source != nil && source.traits().directory
}

// Sources has a field for each kind of [VolumeSource]. A volume sets exactly one.
type Sources struct {
	HostPath       *HostPath       `json:"hostPath,omitempty"`
	NFS            *NFS            `json:"nfs,omitempty"`
	ISCSI          *ISCSI          `json:"iscsi,omitempty"`
	Filestore      *Filestore      `json:"filestore,omitempty"`
	GCSFuse        *GCSFuse        `json:"gcsFuse,omitempty"`
	PersistentDisk *PersistentDisk `json:"persistentDisk,omitempty"`
	CSI            *CSI            `json:"csi,omitempty"`
}

// VolumeSource is the storage that holds the data of a volume.
type VolumeSource interface {
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
	resolve(*Stack)
	// check checks the fields. The path is of the source.
	check(p *input.Problems, path *field.Path, stack *Stack)
	// checkSize checks the size of storage that the stack creates. The path is of the size.
	checkSize(p *input.Problems, path *field.Path, volume *Volume)
	// checkUsers checks that the pods can reach the storage.
	checkUsers(p *input.Problems, path *field.Path, users volumeUsers)
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
func (s *Sources) given() []VolumeSource {
	var given []VolumeSource
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			given = append(given, fields.Field(i).Interface().(VolumeSource))
		}
	}
	return given
}

// volumeKinds returns an empty source of each kind.
func volumeKinds() []VolumeSource {
	var kinds []VolumeSource
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Sources]()) {
		kinds = append(kinds, reflect.New(f.Type.Elem()).Interface().(VolumeSource))
	}
	return kinds
}

// VolumeFields returns the fields of all kinds of source by the Google Cloud API that they need, or
// "".
func VolumeFields() map[string][]string {
	fields := map[string][]string{}
	for _, kind := range volumeKinds() {
		fields[kind.API()] = append(fields[kind.API()], kind.Field())
	}
	return fields
}

// volumeFields returns the fields of all kinds of source.
func volumeFields() []string { return input.Words(volumeKinds(), VolumeSource.Field) }

// VolumeSource returns the first source that the user set, or nil.
func (s *Sources) Source() VolumeSource {
	if given := s.given(); len(given) > 0 {
		return given[0]
	}
	return nil
}

// Written returns the fields of the sources that the user set.
func (s *Sources) Written() []string { return input.Words(s.given(), VolumeSource.Field) }

// volumeUsers are the pods that mount a volume.
type volumeUsers struct {
	Pools    []volumePool // where the pods may run
	ReadOnly bool         // no pod writes
	OnePod   bool         // there is one pod, and the storage may restrict its nodes
}

// volumePool describes a node pool to the rules of volumes.
type volumePool struct {
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
func (u volumeUsers) nodes() int {
	nodes := 0
	for _, pool := range u.Pools {
		nodes += pool.Nodes
	}
	return nodes
}

// names returns the names of the pools.
func (u volumeUsers) names() []string {
	return input.Words(u.Pools, func(pool volumePool) string { return pool.Name })
}

// outside is embedded in sources outside of Google Cloud, for which the stack creates nothing.
type outside struct{}

func (outside) Creation() *Creation         { return nil }
func (outside) API() string                 { return "" }
func (outside) Disks(int64) []capacity.Disk { return nil }

func (outside) resolve(*Stack)                                       {}
func (outside) checkSize(*input.Problems, *field.Path, *Volume)      {}
func (outside) checkUsers(*input.Problems, *field.Path, volumeUsers) {}

// checkVolumeList checks the volumes of a stack file. The path is of the list, and users returns the
// pods that mount the volume with a name.
func checkVolumeList(p *input.Problems, path *field.Path, volumes []Volume, stack *Stack, users func(name string) volumeUsers) {
	for i, volume := range volumes {
		volume.check(p, path.Index(i), stack)
		volume.checkUsers(p, path.Index(i), users(volume.Name))
	}
	input.Unique(volumes, func(v Volume) string { return v.Name }, func(i, first int, name string) {
		p.Duplicate(path.Index(i).Child("name"), name, "is already used by %s; give each volume its own name", path.Index(first))
	})
	input.Unique(volumes, func(v Volume) string { return v.Claim }, func(i, first int, claim string) {
		p.Duplicate(path.Index(i).Child("claim"), claim, "is already the claim of %s; give each volume its own claim", path.Index(first))
	})
	input.Unique(volumes, func(v Volume) string { return v.Identity() }, func(i, first int, identity string) {
		p.Duplicate(path.Index(i), identity, "is already the storage of %s; mount that volume in both places", path.Index(first))
	})
}

// Identity returns the identity of the volume's source, or "".
func (v *Volume) Identity() string {
	if source := v.Source(); source != nil {
		return source.Identity()
	}
	return ""
}

func (v *Volume) check(p *input.Problems, path *field.Path, stack *Stack) {
	for i, mode := range v.AccessModes {
		v.CheckAccessMode(p, path.Child("accessModes").Index(i), mode)
	}
	v.checkReclaimPolicy(p, path.Child("reclaimPolicy"))
	for key := range v.Labels {
		if strings.HasPrefix(key, "app.kubernetes.io/") {
			p.Invalid(path.Child("labels").Key(key), key, "is reserved for labels that the program sets; choose another prefix")
		}
	}
	v.CheckSource(p, path, stack)
	v.checkMountOptions(p, path.Child("mountOptions"))
}

// CheckSource checks the size of the volume, and that it has exactly one source, which must
// be valid. The path is of the volume.
func (v *Volume) CheckSource(p *input.Problems, path *field.Path, stack *Stack) {
	given := v.given()
	if v.CheckSize(p, path.Child("size")) && len(given) == 1 {
		given[0].checkSize(p, path.Child("size"), v)
	}
	switch len(given) {
	case 0:
		p.Required(path.Child("gcsFuse"), "write one source: %s", input.Or(volumeFields()))
	case 1:
		given[0].check(p, path.Child(given[0].Field()), stack)
	default:
		first, second := given[0].Field(), given[1].Field()
		p.Forbidden(path.Child(second), "%s is already set; write exactly one of %s and %s", first, first, second)
	}
}

// mostBytes is an exbibyte, more than any storage has.
const mostBytes = 1 << 60

// CheckSize checks that the size is an amount of storage, and reports whether it is.
func (v *Volume) CheckSize(p *input.Problems, path *field.Path) bool {
	size, err := input.ParseQuantity(v.Size)
	switch {
	case v.Size == "":
		p.Required(path, "write a quantity like 10Gi")
	case err != nil:
		p.Invalid(path, v.Size, "%s", err)
	case size.Sign() <= 0:
		p.Invalid(path, v.Size, "must be more than 0, like 10Gi")
	case size.CmpInt64(1<<20) < 0:
		p.Invalid(path, v.Size, "is less than 1Mi; sizes are in bytes, so write a unit, like 10Gi")
	case size.CmpInt64(mostBytes) > 0:
		p.Invalid(path, v.Size, "is more than any storage can hold; write less, like 10Ti")
	default:
		return true
	}
	return false
}

// CheckAccessMode refuses to mount a block device on several nodes for writing.
func (v *Volume) CheckAccessMode(p *input.Problems, path *field.Path, mode corev1.PersistentVolumeAccessMode) {
	if source := v.Source(); mode == corev1.ReadWriteMany && source != nil && source.traits().block {
		p.Invalid(path, mode, "is not supported by a disk, because several nodes that write would corrupt its file system; write ReadWriteOnce, or use filestore or gcsFuse")
	}
}

// checkReclaimPolicy allows Delete only for storage that a CSI driver can delete. Storage
// that the stack creates has deleteWithStack instead.
func (v *Volume) checkReclaimPolicy(p *input.Problems, path *field.Path) {
	source := v.Source()
	if v.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete || source == nil {
		return
	}
	switch {
	case v.Creates():
		p.Invalid(path, v.ReclaimPolicy, "applies only to storage that the stack does not create; write create.deleteWithStack if the data may be deleted with the stack")
	case !source.traits().deletable:
		p.Invalid(path, v.ReclaimPolicy, "is not supported, because no driver deletes this kind of storage; remove it, and delete the data yourself")
	}
}

// checkUsers checks that the pods can reach the storage, and that they run on one node if
// only one can mount the volume.
func (v *Volume) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	source := v.Source()
	if source == nil {
		return
	}
	source.checkUsers(p, path.Child(source.Field()), users)
	if !users.ReadOnly && slices.Contains(v.MountOptions, "ro") {
		p.Warn(path.Child("mountOptions"), "contains ro, so the roles that mount the volume cannot write to it, neither checkpoints nor logs; remove ro, or write readOnly: true in every mount of it")
	}
	if users.nodes() < 2 || source.traits().directory {
		return
	}
	at, from := path.Child("accessModes"), strings.Join(users.names(), ", ")
	const mounts = "the roles that mount the volume run on up to %d nodes (pools %s)"
	switch modes := v.AccessModes; {
	case slices.Contains(modes, corev1.ReadWriteMany):
	case slices.Contains(modes, corev1.ReadOnlyMany) && users.ReadOnly:
	case slices.Contains(modes, corev1.ReadOnlyMany):
		p.Invalid(at, modes, "allows many nodes to read but only one to write, and "+mounts+"; write readOnly: true in every mount of it", users.nodes(), from)
	case source.traits().block:
		p.Invalid(at, modes, "allows one node to mount the volume, and "+mounts+"; use filestore or gcsFuse, or put these roles on one pool with one node", users.nodes(), from)
	default:
		p.Invalid(at, modes, "allows one node to mount the volume, and "+mounts+"; write [ReadWriteMany], or put these roles on one pool with one node", users.nodes(), from)
	}
}

// CheckUsers checks that the pods can reach the source. The path is of the volume.
func (v *Volume) CheckUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	if source := v.Source(); source != nil {
		source.checkUsers(p, path.Child(source.Field()), users)
	}
}

// checkCreatable refuses to create storage on an existing cluster.
func checkCreatable(p *input.Problems, path *field.Path, stack *Stack) bool {
	if !stack.existing() {
		return true
	}
	p.Forbidden(path, "on an existing cluster, the stack creates nothing in Google Cloud; create the storage yourself, and remove create")
	return false
}

// checkDeletion requires deleteWithStack to name the storage, so that a setting copied to
// another volume deletes nothing.
func checkDeletion(p *input.Problems, path *field.Path, deletion, name string) {
	if deletion != "" && deletion != name {
		p.Invalid(path.Child("deleteWithStack"), deletion, "must repeat the name of the storage that is deleted with all checkpoints; write %q, or remove it to keep the data", name)
	}
}

func clean(directory string) string { return path.Clean(directory) }

// checkMountOptions refuses options where the kubelet or the driver does.
func (v *Volume) checkMountOptions(p *input.Problems, path *field.Path) {
	if v.HostPath != nil && len(v.MountOptions) > 0 {
		p.Invalid(path, v.MountOptions, "is not supported by hostPath, so no pod would start; remove it, and write readOnly in the mounts instead of ro")
		return
	}
	for i, option := range v.MountOptions {
		input.MountOption(p, path.Index(i), option, v.MountedBySidecar())
	}
}

// StoredVolume is a volume of the stack with its path in the stack file.
type StoredVolume struct {
	Volume
	Path *field.Path
	// Contents completes "all …", like checkpoints.
	Contents string
}

func (s *Stack) checkStorage(p *input.Problems) {
	checkVolumeList(p, field.NewPath(storageKey), s.Storage, s, s.usersOf)
}

// volume returns the volume with a name, or nil.
func (s *Stack) volume(name string) *Volume {
	if i := slices.IndexFunc(s.Storage, func(v Volume) bool { return v.Name == name }); i >= 0 {
		return &s.Storage[i]
	}
	return nil
}

// volumePool describes a node pool to the rules of volumes.
func (s *Stack) volumePool(pool Pool) volumePool {
	p := volumePool{Name: pool.Name, Nodes: pool.MostNodes(), MachineType: pool.MachineType, COS: pool.ImageType == gcp.ImageCOS}
	if s.Cluster.Existing != nil {
		return p
	}
	p.Zones = pool.Zones
	if machine, ok := pool.Machine(s.MachineTypes); ok {
		p.Disks = machine.BootDisks()
	}
	return p
}

// JobsWrite reports whether a job can write to a volume.
func (s *Stack) JobsWrite(volume string) bool { return !s.usersOf(volume).ReadOnly }

// usersOf returns the node pools of the roles that mount a volume.
func (s *Stack) usersOf(name string) volumeUsers {
	users := volumeUsers{ReadOnly: true}
	mounted := map[string]bool{}
	for i := range s.Jobs {
		for _, role := range s.Jobs[i].Roles() {
			for _, v := range role.stored {
				if v.Name == name {
					mounted[role.NodePool], users.ReadOnly = true, users.ReadOnly && v.readOnly
				}
			}
		}
	}
	for _, pool := range s.Pools() {
		if mounted[pool.Name] {
			users.Pools = append(users.Pools, s.volumePool(pool))
		}
	}
	slices.SortFunc(users.Pools, func(a, b volumePool) int { return cmp.Compare(a.Name, b.Name) })
	return users
}

// MountsVolume reports whether a role of the job mounts a volume of the stack.
func (j *Job) MountsVolume(name string) bool {
	return slices.ContainsFunc(j.Roles(), func(r NamedRole) bool {
		return slices.ContainsFunc(r.stored, func(v storedMount) bool { return v.Name == name })
	})
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

// GCSFuseSidecar returns the requests of the container that GKE adds to the pods of a role
// that mounts buckets, and whether the role mounts one.
func (j *Job) GCSFuseSidecar(kind Kind) (most capacity.Resources, found bool) {
	caches := int64(0)
	for _, v := range kind.Of(j).stored {
		if !v.MountedBySidecar() {
			continue
		}
		asks := v.GCSFuse.Sidecar.Requests()
		caches += v.fileCacheBytes()
		if !v.readOnly {
			asks.EphemeralBytes = max(asks.EphemeralBytes, j.OpenCheckpointBytes(kind))
		}
		most, found = capacity.Resources{
			MilliCPU:       max(most.MilliCPU, asks.MilliCPU),
			MemoryBytes:    max(most.MemoryBytes, asks.MemoryBytes),
			EphemeralBytes: max(most.EphemeralBytes, asks.EphemeralBytes),
		}, true
	}
	most.EphemeralBytes += caches
	return most, found
}

// fileCacheBytes returns the limit of the file cache of a bucket, which is on the disk of the node.
func (v *Volume) fileCacheBytes() int64 {
	for _, option := range v.MountOptions {
		if limit, ok := strings.CutPrefix(option, input.FileCacheOption); ok {
			mebibytes, _ := strconv.ParseInt(limit, 10, 64)
			return max(0, mebibytes) << 20
		}
	}
	return 0
}
