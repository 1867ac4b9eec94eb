package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// Volume is a checkpoint volume: a PersistentVolume and its claim, in the namespace of the jobs. It has exactly one
// source, which exists unless it has `create`.
type Volume struct {
	// Name is the name of the PersistentVolume.
	Name string `json:"name" form:"label"`
	// Claim is the name of the PersistentVolumeClaim. Default: NAME-claim.
	Claim string `json:"claim,omitempty" form:"subdomain"`
	// Size is the capacity of the volume and its claim. Storage that the stack creates cannot shrink.
	Size string `json:"size" form:"bytes"`
	// AccessModes are how nodes can mount the volume. Default: ReadWriteOnce for block devices and hostPath, else
	// ReadWriteMany.
	AccessModes []accessMode `json:"accessModes,omitempty" unique:"true" enum:"ReadWriteOnce,ReadOnlyMany,ReadWriteMany"`
	// ReclaimPolicy is Retain, or Delete: the CSI driver deletes all checkpoints with the claim, as in `pulumi destroy`.
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty" default:"Retain" enum:"Retain,Delete"`
	// MountOptions are passed to the driver. A bucket also has implicit-dirs, which shows folders that an upload has
	// made, and metadata-cache:ttl-secs:60, unless you write others.
	MountOptions []string `json:"mountOptions,omitempty"`
	// Labels are Kubernetes labels for the volume and the claim.
	Labels map[string]string `json:"labels,omitempty" form:"labels"`

	Sources `json:",inline"`
}

type accessMode = corev1.PersistentVolumeAccessMode

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

// VolumeSource is the storage that holds the data of a volume. Sources may have two more methods: resolve
// fills in defaults that depend on the cluster, and checkUsers checks that pods can reach the storage.
type VolumeSource interface {
	// String names the storage for people, like gs://checkpoints.
	fmt.Stringer
	// check checks the fields. The path is of the source.
	check(p *input.Problems, path *field.Path, site *Site)
}

// volumeFields returns the fields of all kinds of source.
func volumeFields() []string {
	return input.Words(reflect.VisibleFields(reflect.TypeFor[Sources]()), input.JSONName)
}

// Written returns the fields of the sources that the user set.
func (s *Sources) Written() []string {
	var written []string
	for i, name := range volumeFields() {
		if !reflect.ValueOf(s).Elem().Field(i).IsNil() {
			written = append(written, name)
		}
	}
	return written
}

// Field returns the field of the first source that the user set, or "".
func (s *Sources) Field() string { return strings.Join(s.Written()[:min(1, len(s.Written()))], "") }

// kind returns the properties of the source, which are zero without one.
func (s *Sources) kind() sourceKind { return sourceKinds[s.Field()] }

// API returns the Google Cloud API that the source needs, or "".
func (s *Sources) API() string { return s.kind().api }

// Source returns the first source that the user set, or nil.
func (s *Sources) Source() VolumeSource {
	for i := range volumeFields() {
		if source := reflect.ValueOf(s).Elem().Field(i); !source.IsNil() {
			return source.Interface().(VolumeSource)
		}
	}
	return nil
}

// Creation describes what the stack creates for a volume, or returns nil if the storage exists already.
func (s *Sources) Creation() *Creation {
	switch {
	case s.GCSFuse != nil && s.GCSFuse.Create != nil:
		return &s.GCSFuse.Create.Creation
	case s.Filestore != nil && s.Filestore.Create != nil:
		return &s.Filestore.Create.Creation
	case s.PersistentDisk != nil && s.PersistentDisk.Create != nil:
		return &s.PersistentDisk.Create.Creation
	}
	return nil
}

// resolve fills in defaults that depend on the rest of the stack file.
func (v *Volume) resolve(site *Site) {
	if v.Claim == "" && v.Name != "" {
		v.Claim = v.Name + "-claim"
	}
	if v.Source() == nil {
		return
	}
	if len(v.AccessModes) == 0 {
		v.AccessModes = []accessMode{v.kind().access}
	}
	if source, ok := v.Source().(interface{ resolve(*Site) }); ok {
		source.resolve(site)
	}
	if !v.MountedBySidecar() {
		return
	}
	for _, option := range bucketOptions {
		if !slices.ContainsFunc(v.MountOptions, option.written.MatchString) {
			v.MountOptions = append(v.MountOptions, option.value) // after those with a path in the stack file
		}
	}
}

// bucketOptions are the mount options of a bucket, unless one that written matches is there: to show the
// folders that an upload has made, and to see within a minute what other nodes write. On machines with eight
// large GPUs, gcsfuse would never look again (gcsfuse v3.11.4, cfg/params.yaml).
var bucketOptions = []struct {
	value   string
	written *regexp.Regexp
}{
	{"implicit-dirs", regexp.MustCompile(`^-*implicit[-_]dirs\b`)},
	{"metadata-cache:ttl-secs:60", regexp.MustCompile(`^-*(metadata[-_]cache[-_:]|stat[-_]cache[-_]|type[-_]cache[-_])ttl\b`)},
}

// blindOptions are mount options with which a node does not see for minutes, or ever, what other nodes write
// (gcsfuse v3.11.4, cfg/params.yaml; nfs(5)), and what to do instead.
var blindOptions = []struct {
	written *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`^(file-system:)?kernel-list-cache-ttl-secs[:=]-?[1-9]|^profile[:=]aiml-serving$|^nocto$`), "remove it"},
	{regexp.MustCompile(`^metadata-cache[:-](negative-)?ttl-secs[:=](-|\d{3})|^(stat|type)-cache-ttl[:=].*[hm]|enable-nonexistent-type-cache`),
		"write a time of at most a minute, like metadata-cache:ttl-secs:60"},
	{regexp.MustCompile(`^ac(timeo|(reg|dir)(min|max))=\d{3}`), "write at most 60 seconds"},
}

// SizeGiB returns the size in GiB, rounded up, or 0 if it is invalid.
func (v *Volume) SizeGiB() int64 {
	size, err := input.ParseQuantity(v.Size)
	if err != nil {
		return 0
	}
	return (size.Value() + 1<<30 - 1) >> 30
}

// Creates reports whether the stack creates the storage of the volume.
func (v *Volume) Creates() bool { return v.Creation() != nil }

// DeletesData reports whether `pulumi destroy` deletes the data of the volume.
func (v *Volume) DeletesData() bool {
	return v.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete || v.Creates() && v.Creation().DeleteWithStack != ""
}

// MountedBySidecar reports whether GKE adds a container to each pod that mounts the volume.
func (v *Volume) MountedBySidecar() bool { return v.GCSFuse != nil }

// OnOneNode reports whether the volume is a directory of one node.
func (v *Volume) OnOneNode() bool { return v.kind().directory }

// Identity returns the same text for volumes with the same data, or "" without a source.
func (v *Volume) Identity() string {
	switch {
	case v.Filestore != nil:
		return v.Filestore.Handle()
	case v.Source() != nil:
		return v.Source().String()
	}
	return ""
}

// checkVolumeList checks the volumes of a stack file. The path is of the list, and users returns the
// pods that mount the volume with a name.
func checkVolumeList(p *input.Problems, path *field.Path, volumes []Volume, site *Site, users func(name string) volumeUsers) {
	for i, volume := range volumes {
		volume.check(p, path.Index(i), site)
		volume.checkNodes(p, path.Index(i), users(volume.Name))
	}
	input.Unique(p, path, "name", input.Words(volumes, func(v Volume) string { return v.Name }))
	input.Unique(p, path, "claim", input.Words(volumes, func(v Volume) string { return v.Claim }))
	input.Unique(p, path, "", input.Words(volumes, func(v Volume) string { return v.Identity() }))
}

func (v *Volume) check(p *input.Problems, path *field.Path, site *Site) {
	for i, mode := range v.AccessModes {
		v.checkAccessMode(p, path.Child("accessModes").Index(i), mode)
	}
	deletes := v.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	if deletes && v.Source() != nil && (v.Creates() || !v.kind().deletable) {
		p.Invalid(path.Child("reclaimPolicy"), v.ReclaimPolicy, "applies only to disks, Filestore and CSI volumes that the stack does "+
			"not create; remove it, and write create.deleteWithStack if the data may be deleted with the stack")
	}
	v.checkSource(p, path, site)
	if f, size := v.Filestore, v.SizeGiB(); f != nil && f.Create != nil && size > 0 {
		if next, _ := gcp.FilestoreSizes(f.Create.Tier, size); len(next) > 0 && !slices.Contains(next, size) {
			p.Invalid(path.Child("size"), v.Size, "is not a capacity of an instance of the tier %s; write %s",
				f.Create.Tier, input.Or(input.Words(next, func(gib int64) string { return fmt.Sprintf("%dGi", gib) })))
		}
	}
	if options := path.Child("mountOptions"); v.HostPath != nil && len(v.MountOptions) > 0 {
		p.Invalid(options, v.MountOptions,
			"is not supported by hostPath, so no pod would start; remove it, and write readOnly in the mounts instead of ro")
	} else {
		for i, option := range v.MountOptions {
			checkMountOption(p, options.Index(i), option, v.MountedBySidecar())
		}
	}
}

// checkMountOption refuses an element of mountOptions that is not one option, which no driver reads.
func checkMountOption(p *input.Problems, path *field.Path, option string, bucket bool) {
	name, _, _ := strings.Cut(option, "=")
	several := bucket && strings.Contains(option, ",") && !strings.Contains(name, "regex")
	if several || strings.HasPrefix(option, "-") || strings.ContainsAny(option, " \t") {
		var options []string
		for text := range strings.SplitSeq(option, ",") {
			text = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(text), "-o "), "- ")
			options = append(options, strings.Join(strings.Fields(text), "="))
		}
		p.Invalid(path, option, "is not one option, and no pod that mounts the volume would start; "+
			"write each option as an element of its own: %s", strings.Join(options, ", "))
		return
	}
	if discarded := discardedOptions.FindString(option); bucket && discarded != "" {
		p.Invalid(path, option, "is discarded by GKE's driver, which sets the option itself; remove it: pods have the access of "+
			"their job's identity, %s10240 turns the cache on, and the container gke-gcsfuse-sidecar has the log", fileCacheOption)
	}
	if bucket && strings.HasPrefix(option, fileCacheOption+"-") {
		p.Warn(path, "%s may fill the disk of the node, and Kubernetes then evicts pods; "+
			"write a limit, like %s10240, which the capacity plan counts", option, fileCacheOption)
	}
}

// discardedOptions matches mount options of gcsfuse that GKE's driver drops without a word (GoogleCloudPlatform/
// gcs-fuse-csi-driver, pkg/sidecar_mounter/sidecar_mounter_config.go, disallowedFlags).
var discardedOptions = regexp.MustCompile(`^(temp-dir|config-file|foreground|log-file|log-format|key-file|token-url|` +
	`reuse-token-from-url|cache-dir|experimental-local-file-cache|prometheus-port|logging:log-rotate:[a-z-]+)([:=]|$)`)

// fileCacheOption begins the option that turns the file cache of a bucket on.
const fileCacheOption = "file-cache:max-size-mb:"

// checkSource checks that a volume has exactly one source, which must be valid. The path is of the volume.
func (v *Volume) checkSource(p *input.Problems, path *field.Path, site *Site) {
	switch written := v.Written(); len(written) {
	case 0:
		p.Required(path.Child("gcsFuse"), "write one source: %s", input.Or(volumeFields()))
	case 1:
		v.Source().check(p, path.Child(written[0]), site)
	default:
		p.Forbidden(path.Child(written[1]), "%s is already set; remove one of them", written[0])
	}
	d := v.PersistentDisk
	if d == nil || d.Create == nil {
		return
	}
	least, most := gcp.DiskGB(d.Create.Type, d.Regional())
	switch at, size := path.Child("persistentDisk", "create", "type"), v.SizeGiB(); {
	case !slices.Contains(gcp.DiskTypes, d.Create.Type) || size == 0: // reported by a tag
	case most == 0:
		p.Invalid(at, d.Create.Type, "has no regional disks; write pd-balanced or pd-ssd, or one zone")
	case size < int64(least) || size > int64(most):
		p.Invalid(path.Child("size"), v.Size, "must be from %dGi to %dGi, the sizes of such a disk of type %s", least, most, d.Create.Type)
	}
}

// checkAccessMode refuses to mount a block device on several nodes for writing.
func (v *Volume) checkAccessMode(p *input.Problems, path *field.Path, mode accessMode) {
	if mode == corev1.ReadWriteMany && v.kind().block {
		p.Invalid(path, mode, "is not supported by a disk, because several nodes that write would corrupt its file system; "+
			"write ReadWriteOnce, or use filestore or gcsFuse")
	}
}

// checkUsers checks that the pods can reach the source. The path is of the volume.
func (v *Volume) checkUsers(p *input.Problems, path *field.Path, users volumeUsers) {
	if source, ok := v.Source().(interface {
		checkUsers(*input.Problems, *field.Path, volumeUsers)
	}); ok {
		source.checkUsers(p, path.Child(v.Field()), users)
	}
}

// checkNodes checks that the pods can reach the storage, and that they run on one node if
// only one can mount the volume.
func (v *Volume) checkNodes(p *input.Problems, path *field.Path, users volumeUsers) {
	v.checkUsers(p, path, users)
	if !users.ReadOnly && slices.Contains(v.MountOptions, "ro") {
		p.Warn(path.Child("mountOptions"), "contains ro, so the roles that mount the volume cannot write to it, neither checkpoints "+
			"nor logs; remove ro, or mount the volume only with readOnly: true")
	}
	for i, option := range v.MountOptions {
		for _, blind := range blindOptions {
			if !users.ReadOnly && blind.written.MatchString(strings.ReplaceAll(option, "_", "-")) {
				p.Warn(path.Child("mountOptions").Index(i), "with %s, a node does not see what others write: neither a coordinator that "+
					"another works, nor a script a new file; %s, or mount the volume only with readOnly: true", option, blind.instead)
			}
		}
	}
	modes, remedy := v.AccessModes, "write [ReadWriteMany]"
	readers, writers := slices.Contains(modes, corev1.ReadOnlyMany), slices.Contains(modes, corev1.ReadWriteMany)
	switch {
	case v.Source() == nil || users.nodes() < 2 || v.OnOneNode() || writers || readers && users.ReadOnly:
		return
	case readers:
		remedy = "write readOnly: true in every mount of it"
	case v.kind().block:
		remedy = "use filestore or gcsFuse"
	}
	p.Invalid(path.Child("accessModes"), modes, "allows one node to write, and the roles that mount the volume run on up to %d nodes "+
		"(pools %s); %s, or put these roles on one pool with one node", users.nodes(), users.names(), remedy)
}

// fileCacheBytes returns the limit of the file cache of a bucket, which is on the disk of the node.
func (v *Volume) fileCacheBytes() int64 {
	for _, option := range v.MountOptions {
		if limit, ok := strings.CutPrefix(option, fileCacheOption); ok {
			mebibytes, _ := strconv.ParseInt(limit, 10, 64)
			return max(0, mebibytes) << 20
		}
	}
	return 0
}
