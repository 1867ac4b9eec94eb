package jobspec

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
	"persia/config/pod"
	"persia/gcp"
)

// takenVolumes matches the names of volumes that the program adds to pods.
var takenVolumes = regexp.MustCompile(`^(claim-\d+|launch|state|shared-memory)$`)

// checkVolumes checks the Kubernetes volumes of a job.
func checkVolumes(p *check.Problems, at *field.Path, volumes []corev1.Volume) {
	for i, volume := range volumes {
		at := at.Index(i)
		p.Name(at.Child("name"), volume.Name, validation.IsDNS1123Label)
		if takenVolumes.MatchString(volume.Name) {
			p.Invalid(at.Child("name"), volume.Name, "is the name of a volume that every job has; choose another name")
		}
		checkOneSource(p, at, volume)
	}
	check.UniqueField(p, at, "name", volumes, func(v corev1.Volume) string { return v.Name }, "is already used by volumes[%d]; give each volume its own name")
}

// checkOneSource checks that a volume has exactly one source, which must be valid.
func checkOneSource(p *check.Problems, at *field.Path, volume corev1.Volume) {
	var given []string
	source := reflect.ValueOf(volume.VolumeSource)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			given = append(given, check.JSONName(source.Type().Field(i)))
		}
	}
	switch {
	case len(given) == 0:
		p.Required(at, "write a source, like persistentVolumeClaim: {claimName: data}")
	case len(given) > 1:
		p.Forbidden(at, "has %d sources, %s; write one of them", len(given), check.And(given))
	}
	if claim := volume.PersistentVolumeClaim; claim != nil {
		p.Name(at.Child("persistentVolumeClaim", "claimName"), claim.ClaimName, validation.IsDNS1123Subdomain)
	}
	for _, kind := range given {
		if slices.Contains(foreign, kind) {
			p.Forbidden(at.Child(kind), "is a volume type that GKE nodes cannot mount; use a persistentVolumeClaim, nfs, or mounts with a volume of the stack")
		}
	}
	checkSource(p, at, volume)
}

// checkHostPath checks a directory of the nodes. It refuses directories of the node's own
// software.
func checkHostPath(p *check.Problems, source *field.Path, host corev1.HostPathVolumeSource) {
	if host.Type != nil && *host.Type != "" {
		check.OneOf(p, source.Child("type"), *host.Type, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
			corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)
	}
	at, directory := source.Child("path"), host.Path
	switch system := gcp.SystemDirectory(directory); {
	case !path.IsAbs(directory):
		p.Invalid(at, directory, "must be absolute; write %s", path.Join("/", directory))
	case slices.Contains(strings.Split(directory, "/"), ".."):
		p.Invalid(at, directory, "must be a path without ., .., repeated slashes, or a trailing slash; write %s", path.Clean(directory))
	case system != "":
		p.Invalid(at, directory, "overlaps with %s, which belongs to the node; use your own directory, like /var/lib/data", system)
	}
}

// checkHostPaths checks that the nodes of a role can create the directories that it mounts.
func (c *checker) checkHostPaths(at *field.Path, j *Job, role *Role) {
	pool := c.context.pool(role.NodePool)
	for i, volume := range j.Volumes {
		if host := volume.HostPath; host != nil && role.mountsVolume(volume.Name) && pool.COS && path.IsAbs(host.Path) && gcp.SystemDirectory(host.Path) == "" && !gcp.WritableOnCOS(host.Path) {
			c.Invalid(at.Index(i).Child("hostPath", "path"), host.Path, "cannot be created on the nodes of pool %s, because the root file system of Container-Optimized OS is read-only; use a directory below %s, like /var/lib/data, or give the pool imageType: %s",
				pool.Name, check.Or(gcp.COSWritable()), gcp.ImageUbuntu)
		}
	}
}

// checkVolumeMounts checks the volumeMounts of a role.
func checkVolumeMounts(p *check.Problems, at *field.Path, job *Job, role *Role) {
	others := map[string]string{}
	for _, mount := range job.MountsOf(*role) {
		others[mount.MountPath] = "a mount of the volume " + mount.Volume
	}
	for i, mount := range role.VolumeMounts {
		at, clean := at.Index(i), path.Clean(mount.MountPath)
		checkMountedVolume(p, at.Child("name"), mount.Name, job.Volumes)
		checkMountPath(p, at.Child("mountPath"), mount.MountPath, others[clean])
		others[clean] = fmt.Sprintf("volumeMounts[%d]", i)
		checkPropagation(p, at, mount)
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			p.Forbidden(at.Child("subPathExpr"), "cannot be combined with subPath; write either subPath or subPathExpr")
		}
		check.SubPath(p, at.Child("subPath"), mount.SubPath)
		check.SubPath(p, at.Child("subPathExpr"), mount.SubPathExpr)
	}
}

// checkPropagation checks mountPropagation and recursiveReadOnly.
func checkPropagation(p *check.Problems, at *field.Path, mount corev1.VolumeMount) {
	if mode := mount.MountPropagation; mode != nil {
		// Bidirectional requires a privileged container.
		check.OneOf(p, at.Child("mountPropagation"), *mode, corev1.MountPropagationNone, corev1.MountPropagationHostToContainer)
	}
	recursive := mount.RecursiveReadOnly
	if recursive == nil || !check.OneOf(p, at.Child("recursiveReadOnly"), *recursive, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled) || *recursive == corev1.RecursiveReadOnlyDisabled {
		return
	}
	if propagates := mount.MountPropagation != nil && *mount.MountPropagation != corev1.MountPropagationNone; !mount.ReadOnly || propagates {
		p.Invalid(at.Child("recursiveReadOnly"), *recursive, "requires readOnly: true and no mountPropagation; remove it, or change those")
	}
}

func checkMountedVolume(p *check.Problems, at *field.Path, name string, volumes []corev1.Volume) {
	names := check.Words(volumes, func(v corev1.Volume) string { return v.Name })
	switch {
	case name != "" && slices.Contains(names, name):
	case len(names) == 0:
		p.Invalid(at, name, "must be one of the job's volumes, but it has none; add one in volumes, or use mounts to mount a volume of the stack")
	case name == "":
		p.Required(at, "write one of the job's volumes: %s", check.Or(names))
	default:
		p.Invalid(at, name, "must be one of the job's volumes: %s", check.Or(names))
	}
}

// checkMountPath checks a mountPath, which Kubernetes accepts unclean, for example with a
// trailing slash. A job may replace the program's shared memory with a volume of its own.
func checkMountPath(p *check.Problems, at *field.Path, mountPath, other string) {
	clean := path.Clean(mountPath)
	switch {
	case mountPath == "":
		p.Required(at, "write an absolute path, like /data")
	case !path.IsAbs(mountPath):
		p.Invalid(at, mountPath, "must be absolute; write %s", path.Join("/", mountPath))
	case clean == "/":
		p.Invalid(at, mountPath, "must be a directory below the root, like /data")
	case strings.Contains(mountPath, ":"):
		p.Invalid(at, mountPath, "must not contain a colon; rename the directory")
	case other != "":
		p.Duplicate(at, mountPath, "is already used by %s; give each volume its own path", other)
	case taken(mountPath, true) != "":
		p.Invalid(at, mountPath, "%s; choose another path, like /data", taken(mountPath, true))
	}
}

// warnOfVolumes warns of volumes that no role mounts, and of claims and drivers that the stack
// does not have.
func (c *checker) warnOfVolumes(at *field.Path, j *Job) {
	claims := check.Words(c.context.Volumes, func(v Volume) string { return v.Claim })
	for i, volume := range j.Volumes {
		at := at.Index(i)
		if !slices.ContainsFunc(j.Roles(), func(r NamedRole) bool { return r.mountsVolume(volume.Name) }) {
			c.Warn(at, "no role mounts the volume %s; write it in volumeMounts of a role, or remove it", volume.Name)
		}
		if claim := volume.PersistentVolumeClaim; claim != nil {
			if near := check.Typo(claim.ClaimName, claims); len(near) > 0 {
				c.Warn(at.Child("persistentVolumeClaim", "claimName"), "%s is the claim of no volume of the stack, and pods wait until it exists; did you mean %s?", claim.ClaimName, check.Or(near))
			}
		}
		if csi := volume.CSI; csi != nil && c.context.Created && csi.Driver != gcp.DriverGCSFuse {
			c.Warn(at.Child("csi", "driver"), "%s is not installed in a cluster that the stack creates, so pods that mount the volume wait until you install it; use mounts with a volume of %s", csi.Driver, c.context.StorageKey)
		}
		if csi := volume.CSI; csi != nil && csi.Driver == gcp.DriverGCSFuse {
			warnOfBucket(c.Problems, at.Child("csi", "volumeAttributes"), csi.VolumeAttributes)
		}
		if dir := volume.EmptyDir; dir != nil && dir.SizeLimit != nil && dir.SizeLimit.Sign() > 0 && dir.SizeLimit.CmpInt64(1<<20) < 0 {
			c.Warn(at.Child("emptyDir", "sizeLimit"), "%s is less than 1Mi, and Kubernetes evicts a pod that writes more; sizes are in bytes, so write a unit, like 10Gi", dir.SizeLimit)
		}
		c.warnOfMemory(at.Child("emptyDir", "sizeLimit"), j, volume)
	}
}

// warnOfMemory warns of a directory in memory that may become larger than the memory of a role
// that mounts it: its files count as memory of the container.
func (c *checker) warnOfMemory(at *field.Path, j *Job, volume corev1.Volume) {
	dir := volume.EmptyDir
	if dir == nil || dir.Medium != corev1.StorageMediumMemory || dir.SizeLimit == nil {
		return
	}
	for _, role := range j.Roles() {
		memory, _, limited := pod.Limit(nil, role.Resources, corev1.ResourceMemory)
		if role.mountsVolume(volume.Name) && limited && dir.SizeLimit.Cmp(memory) >= 0 {
			c.Warn(at, "%s of files in memory leave nothing of the %s that %s may use, and Kubernetes kills a container that uses more; write less, or a larger limit", dir.SizeLimit, memory.String(), role.Field)
		}
	}
}

// bucketAttributes are the attributes of a bucket that a pod mounts (GKE, "Cloud Storage FUSE CSI
// driver volume attributes").
var bucketAttributes = strings.Fields("bucketName disableMetrics fileCacheCapacity fileCacheForRangeRead gcsfuseLoggingSeverity gcsfuseMetadataPrefetchOnMount metadataCacheTTLSeconds metadataStatCacheCapacity metadataTypeCacheCapacity mountOptions skipCSIBucketAccessCheck")

// warnOfBucket warns of attributes and mount options of a bucket that look misspelt.
func warnOfBucket(p *check.Problems, at *field.Path, attributes map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if near := check.Typo(name, bucketAttributes); len(near) > 0 {
			p.Warn(at.Key(name), "%s is no attribute that the driver reads; did you mean %s?", name, check.Or(near))
		}
	}
	if options := attributes["mountOptions"]; options != "" {
		for option := range strings.SplitSeq(options, ",") {
			check.MountOption(p, at.Key("mountOptions"), option, "gcsFuse")
		}
	}
}

// cpuImage matches images without CUDA, by their names.
var cpuImage = regexp.MustCompile(`(^|[-_/])cpu([-_:@]|$)`)

// warnOfImages warns of images that cannot use the GPUs that a role requests, and of images
// that no node pulls.
func (c *checker) warnOfImages(j *Job) {
	if j.ImagePullPolicy == corev1.PullNever {
		c.Warn(j.at.Child("imagePullPolicy"), pod.NeverPulled)
	}
	for _, role := range j.Roles() {
		image := cmp.Or(role.Image, role.DefaultImage)
		switch at := j.at.Child(role.Field); {
		case pod.GPUs(role.Resources) == 0:
		case role.Server:
			c.Warn(at.Child("resources"), "%s requests GPUs, which PERSIA's servers do not use, but which are billed; remove %s", role.Field, pod.GPU)
		case cpuImage.MatchString(image):
			c.Warn(at.Child("image"), "%s is an image without CUDA by its name, but %s requests GPUs, which it cannot use; write an image with CUDA, or remove %s from the resources", image, role.Field, pod.GPU)
		}
	}
}
