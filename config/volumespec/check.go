package volumespec

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Check checks the volumes of a stack file. The path is of the list, and users returns the
// pods that mount the volume with a name.
func Check(p *check.Problems, path *field.Path, volumes []Volume, context Context, users func(name string) Users) {
	for i, volume := range volumes {
		volume.check(p, path.Index(i), context)
		of := users(volume.Name)
		volume.checkUsers(p, path.Index(i), of)
		if len(of.Pools) == 0 {
			p.Warn(path.Index(i), "no role mounts the volume %s; write it in mounts of a job, or remove it", volume.Name)
		}
	}
	check.Unique(volumes, func(v Volume) string { return v.Name }, func(i, first int, name string) {
		p.Duplicate(path.Index(i).Child("name"), name, "is already used by %s; give each volume its own name", path.Index(first))
	})
	check.Unique(volumes, func(v Volume) string { return v.Claim }, func(i, first int, claim string) {
		p.Duplicate(path.Index(i).Child("claim"), claim, "is already the claim of %s; give each volume its own claim", path.Index(first))
	})
	check.Unique(volumes, func(v Volume) string { return v.Identity() }, func(i, first int, identity string) {
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

func (v *Volume) check(p *check.Problems, path *field.Path, context Context) {
	p.Name(path.Child("name"), v.Name, validation.IsDNS1123Label)
	if v.Claim != "" {
		p.Name(path.Child("claim"), v.Claim, validation.IsDNS1123Subdomain)
	}
	for i, mode := range v.AccessModes {
		v.CheckAccessMode(p, path.Child("accessModes").Index(i), mode)
	}
	check.Once(p, path.Child("accessModes"), v.AccessModes, "write each access mode once")
	v.checkReclaimPolicy(p, path.Child("reclaimPolicy"))
	checkLabels(p, path.Child("labels"), v.Labels)
	v.CheckSource(p, path, context)
	v.checkMountOptions(p, path.Child("mountOptions"))
}

// CheckSource checks the size of the volume, and that it has exactly one source, which must
// be valid. The path is of the volume.
func (v *Volume) CheckSource(p *check.Problems, path *field.Path, context Context) {
	given := v.given()
	if v.CheckSize(p, path.Child("size")) && len(given) == 1 {
		given[0].checkSize(p, path.Child("size"), v)
	}
	switch len(given) {
	case 0:
		p.Required(path.Child("gcsFuse"), "write one source: %s", check.Or(fields()))
	case 1:
		given[0].check(p, path.Child(given[0].Field()), context)
	default:
		first, second := given[0].Field(), given[1].Field()
		p.Forbidden(path.Child(second), "%s is already set; write exactly one of %s and %s", first, first, second)
	}
}

// mostBytes is an exbibyte, more than any storage has.
const mostBytes = 1 << 60

// CheckSize checks that the size is an amount of storage, and reports whether it is.
func (v *Volume) CheckSize(p *check.Problems, path *field.Path) bool {
	size, err := check.ParseQuantity(v.Size)
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
func (v *Volume) CheckAccessMode(p *check.Problems, path *field.Path, mode corev1.PersistentVolumeAccessMode) {
	if source := v.Source(); mode == corev1.ReadWriteMany && source != nil && source.traits().block {
		p.Invalid(path, mode, "is not supported by a disk, because several nodes that write would corrupt its file system; write ReadWriteOnce, or use filestore or gcsFuse")
	}
}

// checkReclaimPolicy allows Delete only for storage that a CSI driver can delete. Storage
// that the stack creates has deleteWithStack instead.
func (v *Volume) checkReclaimPolicy(p *check.Problems, path *field.Path) {
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

func checkLabels(p *check.Problems, path *field.Path, labels map[string]string) {
	check.Labels(p, path, labels)
	for key := range labels {
		if strings.HasPrefix(key, "app.kubernetes.io/") {
			p.Invalid(path.Key(key), key, "is reserved for labels that the program sets; choose another prefix")
		}
	}
}

// checkUsers checks that the pods can reach the storage, and that they run on one node if
// only one can mount the volume.
func (v *Volume) checkUsers(p *check.Problems, path *field.Path, users Users) {
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
func (v *Volume) CheckUsers(p *check.Problems, path *field.Path, users Users) {
	if source := v.Source(); source != nil {
		source.checkUsers(p, path.Child(source.Field()), users)
	}
}

// checkCreatable refuses to create storage on an existing cluster.
func checkCreatable(p *check.Problems, path *field.Path, context Context) bool {
	if !context.Existing {
		return true
	}
	p.Forbidden(path, "on an existing cluster, the stack creates nothing in Google Cloud; create the storage yourself, and remove create")
	return false
}

// checkDeletion requires deleteWithStack to name the storage, so that a setting copied to
// another volume deletes nothing.
func checkDeletion(p *check.Problems, path *field.Path, deletion, name string) {
	if deletion != "" && deletion != name {
		p.Invalid(path.Child("deleteWithStack"), deletion, "must repeat the name of the storage that is deleted with all checkpoints; write %q, or remove it to keep the data", name)
	}
}

// checkDriver checks that the cluster has the driver of a source.
func checkDriver(p *check.Problems, source *field.Path, driver string, context Context) {
	if context.DriverOff != nil && context.DriverOff(driver) {
		p.Invalid(field.NewPath("persia:cluster", "csiDrivers", driver), false, "must be true, because this driver mounts the volume of %s; remove it, or use another kind of volume", source)
	}
}

func clean(directory string) string { return path.Clean(directory) }
